// Runs the setup of one instance: its config fits its schema, and it ends in time.
import { DaybookError } from "../core/error.ts";
import { fitting } from "../core/standard-schema.ts";
import { afterEither, type Clock } from "../core/clock.ts";
import type { AnyApp } from "./define.ts";
import type { Setup } from "./setup.ts";

export async function runSetup(clock: Clock, app: AnyApp, setup: Setup): Promise<void> {
  const { instance } = setup.verbs;
  const run = async (): Promise<void> => {
    const config = await fittingConfig(app, instance);
    await (app.setup as (verbs: unknown, config: unknown) => unknown)(setup.verbs, config);
  };
  try {
    await within(clock, app.timeoutMs, run(), () => tooSlow(app, instance));
  } finally {
    // Whoever registers later, also in a setup that was given up, is told so.
    setup.end();
  }
}

async function fittingConfig({ key, config: schema, instances }: AnyApp, instance: number): Promise<unknown> {
  const given = instances[instance];
  if (schema === undefined) return given;
  const what = `the config of instance ${instance} of app "${key}" does not fit its schema`;
  return fitting(await schema["~standard"].validate(given), what, { app: key, instance });
}

function tooSlow({ key, timeoutMs }: AnyApp, instance: number): DaybookError {
  return new DaybookError(
    "timeout",
    `the setup of instance ${instance} of app "${key}" took longer than ${timeoutMs} ms: give it a longer "timeout", or ` +
      "let what it waits for happen after it",
    { details: { app: key, instance, timeoutMs } },
  );
}

/** What `work` resolves to. After `ms` it is no longer waited for: `late`, if given, says with which error. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  late?: () => DaybookError,
): Promise<T | undefined> {
  const over = Promise.withResolvers<undefined>();
  const end = (): void => (late === undefined ? over.resolve(undefined) : over.reject(late()));
  const timer = afterEither(clock, ms, end, { keepAlive: true });
  try {
    return await Promise.race([work, over.promise]);
  } finally {
    timer.cancel();
    // What it may still throw, nobody waits for.
    work.catch(() => undefined);
  }
}
