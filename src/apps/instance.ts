// One configured copy of an app in this process, from its setup to its end:
//
//   starting ──► running ──► stopped
//        └─────► failed       its setup threw or took too long: it registers nothing, and other instances go on
import { DaybookError, describeError, isDaybookError, type ErrorDescription } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { excluded, oneRow } from "../storage/word.ts";
import type { AnyJob } from "../jobs/define.ts";
import { ceaseToHost, hostJobs, knownJob } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import type { LiveAttachment } from "../events/live/bus.ts";
import type { Live } from "../events/live/live.ts";
import { checkSchedule } from "../schedules/options.ts";
import { cancelFires } from "../schedules/write-schedule.ts";
import type { AnyApp } from "./define.ts";
import { tell, tellSetupFailed, type Running } from "./handler.ts";
import {
  type InstanceIdentity,
  type Registration,
  type Ready,
  beginOf,
  namesWithHistory,
  writeRegistrations,
} from "./registration.ts";
import { runSetup, within, createSetup } from "./setup.ts";
import { resolveSource } from "./source.ts";

export type AppsWiring = {
  readonly engine: Engine;
  readonly live: Live;
  /** The book that the front door hands to a setup. */
  readonly bookFor: (tenant: string) => unknown;
};

export type Instance = {
  readonly identity: InstanceIdentity;
  readonly failed: boolean;
  /** The names that have run in this process; the latest runs may not be on disk yet. */
  readonly acted: Set<string>;
  stop(): Promise<void>;
};

/** Resolves once the instance runs or has failed; never rejects. `acted` comes from the instance that it replaces. */
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
    app,
    identity,
    running,
    signal: ending.signal,
    book: () => bookFor(tenant),
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
    // The setup is complete without this: the next setup cancels what is left.
    await cancelFires(engine, tenant, beginOf(identity)).catch(() => undefined);
    for (const { does } of setup.registrations) {
      if (does.kind === "listener") attached.push(await live.attach(does.live, tenant));
    }
  }

  // Every part is released, even if releasing another fails.
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
    // If the book cannot be written, that is reported elsewhere.
    await write((tx) => say(tx, "failed", thrown)).catch(() => undefined);
  }
  return {
    identity,
    failed,
    acted,
    stop() {
      if (failed) return Promise.resolve();
      const seq = (): number => engine.session().seq;
      return (stopped ??= end().then(() => write((tx) => writeStopped(tx, identity, seq())).catch(() => undefined)));
    },
  };
}

// Slow work (reading sources, checking schedules) happens before the transaction.
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

// Another process may be making a schedule of the same app at this moment: the next try finds it.
async function untilFree(run: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "conflict" || tries >= triesMax) throw error;
    }
  }
}

export type InstanceStatus = "starting" | "running" | "failed" | "stopped";

export type InstanceState = {
  readonly status: InstanceStatus;
  readonly error: ErrorDescription | null;
  readonly sessionSeq: number;
};

export async function writeInstance(
  tx: Tx,
  { tenant, app, instance }: InstanceIdentity,
  { status, error, sessionSeq }: InstanceState,
): Promise<void> {
  const { type = null, message = null, trace = null } = error ?? {};
  const failure = { error_type: type, error_message: message, error_trace: trace };
  const row = { session_seq: sessionSeq, status, ...failure, changed_at: tx.now };
  await tx.run(sql`insert into daybook_app_instance
    ${oneRow({ tenant_id: tenant, app_key: app, instance_index: instance, ...row })}
    on conflict (tenant_id, app_key, instance_index) do update set ${excluded(Object.keys(row))}`);
}

/** Writes that the instance has stopped, unless another process has taken it over since. */
async function writeStopped(tx: Tx, { tenant, app, instance }: InstanceIdentity, sessionSeq: number): Promise<void> {
  await tx.run(sql`update daybook_app_instance set status = 'stopped', changed_at = ${tx.now}
    where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance} and session_seq = ${sessionSeq}
      and status in ('starting', 'running')`);
}

/** A session that others took for dead goes on under a new one: its instances move to the new session. */
export async function moveInstances(tx: Tx, lost: number, replacement: number): Promise<void> {
  await tx.run(sql`update daybook_app_instance set session_seq = ${replacement}
    where session_seq = ${lost} and status in ('starting', 'running')`);
}
