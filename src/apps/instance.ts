// One configured copy of an app in this process, from its setup to its end:
//
//   starting ──► running ──► stopped
//        └─────► failed       its setup threw or took too long; nothing of it is registered, and others go on
import { DaybookError, describeError, isDaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import type { LiveAttachment } from "../events/live/bus.ts";
import type { Live } from "../events/live/live.ts";
import type { AnyJob } from "../jobs/define.ts";
import { ceaseToHost, hostJobs, knownJob } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import { cancelFires } from "../schedules/cancel-fires.ts";
import { checkSchedule } from "../schedules/options.ts";
import type { Tx } from "../storage/store.ts";
import type { AnyApp } from "./define.ts";
import { tell, tellSetupFailed, type Running } from "./handler.ts";
import { namesWithHistory } from "./history.ts";
import { beginOf, type InstanceIdentity } from "./identity.ts";
import type { Registration } from "./registration.ts";
import { runSetup, within } from "./run-setup.ts";
import { createSetup } from "./setup.ts";
import { resolveSource } from "./source/resolve-source.ts";
import { writeInstance, writeStopped, type InstanceStatus } from "./write-instance.ts";
import { writeRegistrations, type Ready } from "./write-registrations.ts";

export type AppsWiring = {
  readonly engine: Engine;
  readonly live: Live;
  /** The book, as the front door gives it to a setup. */
  readonly bookFor: (tenant: string) => unknown;
};

export type Instance = {
  readonly identity: InstanceIdentity;
  readonly failed: boolean;
  /** Which of its names have run in this process; the book may not know of the latest yet. */
  readonly acted: Set<string>;
  stop(): Promise<void>;
};

/** Resolves once it runs or has failed, and never rejects. `acted` is handed on by the instance that it takes the place
 *  of. */
export async function startInstance(
  { engine, live, bookFor }: AppsWiring,
  app: AnyApp,
  identity: InstanceIdentity,
  acted: Set<string> = new Set(),
): Promise<Instance> {
  const { store, clock } = engine;
  const { tenant } = identity;
  const ending = new AbortController();
  const running: Running = new Set();
  const setup = createSetup({
    ...{ app, identity, running, signal: ending.signal, book: () => bookFor(tenant) },
    acted: (name) => void acted.add(name),
  });
  const attached: LiveAttachment[] = [];
  let hosted: readonly AnyJob[] = [];
  let stopped: Promise<void> | undefined;

  const write = (unit: (tx: Tx) => Promise<void>): Promise<void> => store.write(unit, { tenant });
  const say = (tx: Tx, status: InstanceStatus, thrown?: unknown): Promise<void> => {
    const error = status === "failed" ? describeError(thrown) : null;
    return writeInstance(tx, identity, { status, error, sessionSeq: engine.session().seq });
  };
  const place = { app: identity.app, instance: identity.instance, registration: null, runId: null };

  async function start(): Promise<void> {
    await write((tx) => say(tx, "starting"));
    await runSetup(clock, app, setup);
    const ready = await prepare(engine, setup.registrations);
    const names = new Set(ready.map(({ registration }) => registration.name));
    const history = new Set([...(await namesWithHistory(store, identity, names)), ...acted]);
    const jobs = setup.registrations.flatMap(({ does }) => (does.kind === "listener" ? [] : does.job));
    await hostJobs(engine, jobs);
    hosted = jobs;
    await untilFree(() =>
      write(async (tx) => {
        await writeRegistrations(tx, identity, ready, history);
        await say(tx, "running");
      }),
    );
    // The setup is complete without it: whatever is left, the next one cancels.
    await cancelFires(engine, tenant, beginOf(identity)).catch(() => undefined);
    for (const { does } of setup.registrations) {
      if (does.kind === "listener") attached.push(await live.attach(does.live, tenant));
    }
  }

  // Each part is let go of, whatever becomes of the others.
  async function end(): Promise<void> {
    ending.abort(new DaybookError("closed", `app "${identity.app}" was stopped`));
    const names = hosted.map(({ name }) => name);
    await ceaseToHost(engine, names).catch(() => undefined);
    await Promise.all(attached.map((each) => each.detach()));
    await within(clock, limits.appStopMs, Promise.allSettled(running));
    for (const each of setup.onStop) {
      const done = (async (): Promise<unknown> => each())();
      await within(clock, limits.appStopMs, done).catch((thrown: unknown) => tell(app.onError, thrown, place));
    }
  }

  let failed = false;
  try {
    await start();
  } catch (thrown) {
    failed = true;
    tellSetupFailed(app.onError, thrown, place);
    await end();
    // A book that cannot be written has troubles of its own, and says so elsewhere.
    await write((tx) => say(tx, "failed", thrown)).catch(() => undefined);
  }
  return {
    ...{ identity, failed, acted },
    stop() {
      if (failed) return Promise.resolve();
      const seq = (): number => engine.session().seq;
      return (stopped ??= end().then(() => write((tx) => writeStopped(tx, identity, seq())).catch(() => undefined)));
    },
  };
}

// What takes its time is found out before the transaction.
async function prepare(engine: Engine, registrations: readonly Registration[]): Promise<Ready[]> {
  const ready: Ready[] = [];
  for (const registration of registrations) {
    const { does, name, site } = registration;
    const schedule =
      does.kind === "schedule"
        ? await checkSchedule(name, does.schedule, (job) => knownJob(engine, job), {
            readTemplate: async () => undefined,
            prepareEvent: undefined,
          })
        : null;
    ready.push({ registration, schedule, source: await resolveSource(site) });
  }
  return ready;
}

const triesMax = 5;

// Another process that sets up the same app may make one of its schedules at this moment: the next look finds it.
async function untilFree(run: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "conflict" || tries >= triesMax) throw error;
    }
  }
}
