// One configured copy of an app in this process, from its setup to its end:
//
//   starting ──► running ──► stopped
//        └─────► failed       its setup threw or took too long: it registers nothing, and other instances go on
import { DaybookError, describeError, isDaybookError, type ErrorDescription } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { excluded, oneRow } from "../storage/word.ts";
import type { AnyJob } from "../jobs/define.ts";
import { ceaseToHost, hostJobs, knownJob } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import type { LiveAttachment } from "../events/live/bus.ts";
import type { Pending } from "../events/live/hearing.ts";
import type { Live } from "../events/live/live.ts";
import { readBookZone } from "../schedules/book-zone.ts";
import { checkSchedule } from "../schedules/options.ts";
import { cancelFires } from "../schedules/write-schedule.ts";
import type { AnyApp } from "./define.ts";
import { straysOf, tell, tellSetupFailed, type Running } from "./handler.ts";
import { beginOf, namesWithHistory, ofInstance, writeRegistrations } from "./registration.ts";
import type { InstanceIdentity, Ready, Registration } from "./registration.ts";
import { runSetup, within, createSetup, type Setup } from "./setup.ts";
import { placeIn, resolveSource } from "./source.ts";

export type AppsWiring = {
  readonly engine: Engine;
  readonly live: Live;
  /** The book that the front door hands to a setup. */
  readonly bookFor: (tenant: string) => unknown;
};

export type Instance = {
  readonly failed: boolean;
  /** The names that have run in this process; the latest runs may not be on disk yet. */
  readonly acted: Set<string>;
  /** Returns what its listeners would have acted on later. */
  stop(): Promise<readonly PendingEvents[]>;
};

/** Events that a listener of an app had heard and would have acted on later (`debounce`, `for`, `mode`), had it not been stopped. */
export type PendingEvents = Pending & {
  readonly instance: number;
  /** The name of the registration. */
  readonly name: string;
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
  let setup: Setup | undefined;
  const attached: { readonly name: string; readonly listener: LiveAttachment }[] = [];
  let hosted: readonly AnyJob[] = [];
  let stopped: Promise<readonly PendingEvents[]> | undefined;

  const write = (unit: (tx: Tx) => Promise<void>): Promise<void> => store.write(unit, { tenant });
  const say = async (tx: Tx, status: InstanceStatus, failure?: Failure): Promise<void> => {
    const { type = null, message = null, trace = null, at = null } = failure ?? {};
    const row = {
      status,
      error_type: type,
      error_message: message,
      error_trace: trace,
      error_at: at,
      changed_at: tx.now,
    };
    const whose = { tenant_id: tenant, app_key: identity.app, instance_index: identity.instance };
    const said = { ...whose, session_seq: engine.session().seq, ...row };
    await tx.run(sql`insert into daybook_app_instance ${oneRow(said)}
      on conflict (tenant_id, app_key, instance_index, session_seq) do update set ${excluded(Object.keys(row))}`);
  };
  const place = { app: identity.app, instance: identity.instance, registration: null, runId: null };

  async function start(): Promise<void> {
    await write(async (tx) => {
      await tx.run(sql`delete from daybook_app_instance where ${ofInstance(identity)}
        and session_seq in (select seq from daybook_session where status <> 'running')`);
      await say(tx, "starting");
    });
    setup = createSetup({
      app,
      identity,
      running,
      clock,
      signal: ending.signal,
      strays: straysOf(store),
      book: () => bookFor(tenant),
      zone: app.zone ?? (await readBookZone((statement) => store.read(statement))),
      wasInterrupted: (id) => isAgain(store, tenant, id),
      acted: (name) => void acted.add(name),
    });
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
    for (const { does, name } of setup.registrations) {
      if (does.kind === "listener") attached.push({ name, listener: await live.attach(does.live, tenant) });
    }
  }

  // Every part is released, even if releasing another fails. All handlers are asked to end at once, and are waited for together.
  async function end(): Promise<PendingEvents[]> {
    ending.abort(new DaybookError("closed", `app "${identity.app}" was stopped`));
    const { instance } = identity;
    const detached = attached.map(async ({ name, listener }) =>
      (await listener.detach()).map((each) => ({ instance, name, ...each })),
    );
    const names = hosted.map(({ name }) => name);
    await ceaseToHost(engine, names).catch(() => undefined);
    await within(clock, limits.appStopMs, Promise.allSettled(running));
    const pending = (await Promise.all(detached)).flat();
    for (const each of setup?.onStop ?? []) {
      const done = (async (): Promise<unknown> => each())();
      await within(clock, limits.appStopMs, done).catch((thrown: unknown) => tell(app.onError, thrown, place));
    }
    return pending;
  }

  let failed = false;
  try {
    await start();
  } catch (thrown) {
    failed = true;
    const failure = await describeFailure(app, thrown);
    tellSetupFailed(app.onError, thrown, { ...place, ...failure });
    await end();
    // If the book cannot be written, that is reported elsewhere.
    await write((tx) => say(tx, "failed", failure)).catch(() => undefined);
  }
  return {
    failed,
    acted,
    stop() {
      if (failed) return Promise.resolve([]);
      return (stopped ??= end().then(async (pending) => {
        await write((tx) => writeStopped(tx, identity, engine.session().seq)).catch(() => undefined);
        return pending;
      }));
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
        ? await checkSchedule(name, does.schedule, {
            lookUp: (job) => knownJob(engine, job),
            readTemplate: async () => undefined,
            prepareEvent: undefined,
            zone: () => "UTC",
          })
        : null;
    ready.push({ registration, schedule, source: await resolveSource(site) });
  }
  return ready;
}

/** Whether a job runs again because its run was lost or stopped, and not because it failed: then it did not have to wait. Once a
 *  person has retried a job of its chain, it is never late. */
async function isAgain(store: Store, tenant: string, id: string): Promise<boolean> {
  const chain = await store.read<{ origin: string; delay_ms: number | null }>(
    sql`with recursive chain (seq, origin, delay_ms, retry_of) as (
        select seq, origin, delay_ms, retry_of from daybook_job where tenant_id = ${tenant} and id = ${id}
        union all
        select job.seq, job.origin, job.delay_ms, job.retry_of from chain join daybook_job job on job.seq = chain.retry_of)
      select origin, delay_ms from chain order by seq desc`,
  );
  const [job] = chain;
  return job?.origin === "retry" && job.delay_ms === null && chain.every(({ origin }) => origin !== "manual");
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

/** What a setup failed of, and where in the user's files: where it threw, or else where the app is defined. */
export type Failure = ErrorDescription & { readonly at: string };

async function describeFailure({ site }: AnyApp, thrown: unknown): Promise<Failure> {
  const error = describeError(thrown);
  return { ...error, at: (await placeIn(error.trace)) ?? (await resolveSource(site)).location };
}

export type InstanceStatus = "starting" | "running" | "failed" | "stopped";

/** Writes that the instance has stopped, unless another process has taken it over since. */
async function writeStopped(tx: Tx, identity: InstanceIdentity, sessionSeq: number): Promise<void> {
  await tx.run(sql`update daybook_app_instance set status = 'stopped', changed_at = ${tx.now}
    where ${ofInstance(identity)} and session_seq = ${sessionSeq} and status in ('starting', 'running')`);
}

/** A session that others took for dead goes on under a new one: its instances move to the new session. */
export async function moveInstances(tx: Tx, lost: number, replacement: number): Promise<void> {
  await tx.run(sql`update daybook_app_instance set session_seq = ${replacement}
    where session_seq = ${lost} and status in ('starting', 'running')`);
}
