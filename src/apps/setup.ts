// The setup of one instance: the verbs that register, usable while the setup runs, and the run itself.
import { afterEither, type Clock } from "../core/clock.ts";
import { invalid, DaybookError } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { fitting } from "../core/standard-schema.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { AnyApp } from "./define.ts";
import type { Running, Strays } from "./handler.ts";
import { planJob, planListener, planSchedule, type TimingWord } from "./plan.ts";
import { type InstanceIdentity, type Registration, checkIfExists, createRoster } from "./registration.ts";
import { callSite } from "./source.ts";

/** The options of every verb: a name, and the verb's own options. */
export type Named = { readonly name: string } & Readonly<Record<string, unknown>>;
type Handler = (...given: never[]) => unknown;

type ScheduleVerb = (when: unknown, options: Named, handler?: Handler) => Verbs;

/** The verbs with loose types; the front door gives them their precise types. */
export type Verbs = Readonly<Record<"daily" | "every" | "cron" | "in" | "once", ScheduleVerb>> & {
  readonly key: string;
  readonly instance: number;
  readonly tenant: string;
  readonly signal: AbortSignal;
  readonly book: unknown;
  readonly zone: string;
  on(on: unknown, options: Named, handler?: Handler): Verbs;
  job(options: Named, handler?: Handler): AnyJob;
  onStop(run: () => unknown): void;
};

/** A checked name and handler, and the rest of the options. */
export type Asked = {
  readonly name: string;
  readonly handler: Handler;
  readonly options: Readonly<Record<string, unknown>>;
};

export type SetupParts = {
  readonly app: AnyApp;
  readonly identity: InstanceIdentity;
  readonly running: Running;
  readonly signal: AbortSignal;
  readonly strays: Strays;
  readonly book: () => unknown;
  /** That of its schedules that name none. */
  readonly zone: string;
  /** Whether this job runs again because a loss or a stop had ended its run. */
  readonly wasInterrupted: (jobId: string) => Promise<boolean>;
  readonly clock: Clock;
  /** Called when a registration has run, or tried to. */
  readonly acted: (name: string) => void;
};

export type Setup = ReturnType<typeof createSetup>;

export function createSetup(parts: SetupParts) {
  const { identity, signal } = parts;
  const what = `app "${identity.app}", instance ${identity.instance},`;
  const roster = createRoster(what);
  const onStop: (() => unknown)[] = [];
  let ended = false;

  function ask(verb: string, given: unknown, handler: unknown): Asked & { readonly ifExists: unknown } {
    if (ended) throw tooLate(what, verb);
    if (typeof given !== "object" || given === null) {
      throw invalid(`app.${verb} of ${what} has no options: give { name: "…" } and then a function`);
    }
    const { name, run, ifExists, ...options } = given as Named & { run?: unknown; ifExists?: unknown };
    if (name === undefined) throw invalid(`app.${verb} of ${what} has no name: { name: "…" } is what history follows`);
    checkName(name, `the name of app.${verb} of ${what}`);
    const called = `app.${verb} ${quote(name)} of ${what}`;
    if (handler !== undefined && run !== undefined) throw invalid(`${called} has two functions: give one of them`);
    const found = handler ?? run;
    if (typeof found !== "function") throw invalid(`${called} is given ${quote(found)} as its handler, not a function`);
    return { ifExists, name, handler: found as Handler, options };
  }

  function add(registration: Omit<Registration, "site">, ifExists: unknown): Registration {
    return roster.add({ ...registration, site: callSite() }, checkIfExists(ifExists));
  }

  const schedule =
    (word: TimingWord): ScheduleVerb =>
    (when, options, handler) => {
      const { ifExists, ...asked } = ask(word === "at" ? "once" : word, options, handler);
      add(planSchedule(parts, asked, word, when), ifExists);
      return verbs;
    };

  const verbs: Verbs = {
    key: identity.app,
    instance: identity.instance,
    tenant: identity.tenant,
    signal,
    zone: parts.zone,
    get book() {
      return parts.book();
    },
    on(on, options, handler) {
      const { ifExists, ...asked } = ask("on", options, handler);
      add(planListener(parts, asked, on), ifExists);
      return verbs;
    },
    daily: schedule("daily"),
    every: schedule("every"),
    cron: schedule("cron"),
    in: schedule("in"),
    once: schedule("at"),
    job(options, handler) {
      const { ifExists, ...asked } = ask("job", options, handler);
      const { does } = add(planJob(parts, asked), ifExists);
      if (does.kind !== "job") throw invalid(`${quote(asked.name)} of ${what} is a ${does.kind} already: rename one`);
      return does.job;
    },
    onStop(run) {
      if (typeof run !== "function") throw invalid(`app.onStop of ${what} is given ${quote(run)}, not a function`);
      if (signal.aborted) throw tooLate(what, "onStop");
      onStop.unshift(run);
    },
  };
  return {
    verbs,
    /** Functions to call when the instance stops, the last registered first. */
    onStop,
    get registrations() {
      return roster.all;
    },
    /** Refuses registrations from now on. */
    end: () => void (ended = true),
  };
}

function tooLate(what: string, verb: string): DaybookError {
  return invalid(
    `app.${verb} was called after the setup of ${what} had ended: register in setup; for work that comes up later make ` +
      "an app.job there, and enqueue it",
  );
}

/** Runs a setup with its checked config, within its timeout. */
export async function runSetup(clock: Clock, app: AnyApp, setup: Setup): Promise<void> {
  const { instance } = setup.verbs;
  const run = async (): Promise<void> => {
    const config = await fittingConfig(app, instance);
    await (app.setup as (verbs: unknown, config: unknown) => unknown)(setup.verbs, config);
  };
  try {
    await within(clock, app.timeoutMs, run(), () => tooSlow(app, instance));
  } finally {
    // A verb that is called later throws, also in a setup that timed out.
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
  const error = new DaybookError(
    "timeout",
    `the setup of instance ${instance} of app "${key}" took longer than ${timeoutMs} ms: give it a longer "timeout", or ` +
      "let what it waits for happen after it",
    { details: { app: key, instance, timeoutMs } },
  );
  // A timer makes it, so its frames are those of whatever moved the clock, and not of the setup.
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

/** Waits for `work`, but at most `ms`: then it throws the error of `late`, or returns undefined without one. */
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
    // A late rejection must not be unhandled.
    work.catch(() => undefined);
  }
}
