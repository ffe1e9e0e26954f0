// Lets instances go that no program has any more: those beyond the last of an app that became smaller, or all of a removed app.
import { conflict } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { goneSessions } from "../telemetry/session.ts";
import type { Engine } from "../jobs/engine.ts";
import { cancelFires } from "../schedules/write-schedule.ts";
import { readApp } from "./read-apps.ts";
import { beginOf, namesWithHistory, ofInstance, writeRegistrations, type InstanceIdentity } from "./registration.ts";

export type AppRemoved = {
  readonly key: string;
  readonly dryRun: boolean;
  readonly instances: number;
  /** The registrations that end: schedules decide nothing more. */
  readonly listeners: number;
  readonly schedules: number;
  readonly jobs: number;
  /** How many registrations have run and so stay, as retired ones. Their runs stay as long as others. */
  readonly kept: number;
};

/** Ends everything that an app registered. It is refused while any process runs the app, which would go on without it. */
export async function removeApp(
  engine: Engine,
  tenant: string,
  key: string,
  options: { readonly dryRun?: boolean } = {},
): Promise<AppRemoved> {
  refuseUnknown(options, ["dryRun"], "apps.remove");
  const { dryRun = false } = options;
  const { store } = engine;
  const { instances, registrations, registered } = await readApp(store, tenant, key);
  for (const { index, processes } of instances) {
    const [one] = processes.filter(({ status }) => status === "running" || status === "starting");
    if (one !== undefined) throw runs(key, index, one);
  }
  const indexes = new Set([...instances.map(({ index }) => index), ...registered.map(({ instance }) => instance)]);
  let kept = 0;
  for (const instance of indexes)
    kept += await letGo(engine, { tenant, app: key, instance }, { dryRun, unlessRuns: true });
  return { key, dryRun, instances: instances.length, ...registrations, kept };
}

function runs(app: string, instance: number, { sessionId: session, host, pid }: Process): Error {
  const where = host === null ? `session ${session}` : `session ${session} (process ${pid} on ${host})`;
  return conflict(`instance ${instance} of app "${app}" runs in ${where}: stop it there first`, { app, session });
}

type Process = { readonly sessionId: string; readonly host: string | null; readonly pid: number | null };

type LetGo = {
  /** The names that have run in this process; their latest runs may not be on disk yet. */
  readonly acted?: Iterable<string>;
  readonly dryRun?: boolean;
  /** Refuses while any process runs the instance. */
  readonly unlessRuns?: boolean;
};

/** Retires what an instance registered, or removes it if it never ran, and says how much is retired. */
export async function letGo(
  engine: Engine,
  identity: InstanceIdentity,
  { acted = [], dryRun = false, unlessRuns = false }: LetGo = {},
): Promise<number> {
  const { tenant } = identity;
  const history = new Set([...(await namesWithHistory(engine.store, identity, new Set())), ...acted]);
  if (dryRun) return history.size;
  const gone = (await goneSessions(engine.store)).map(({ seq }) => seq);
  await engine.store.write(
    async (tx) => {
      await writeRegistrations(tx, identity, [], history);
      // After the registrations are locked: a process that has begun to start the instance has said so by now, or it writes its own later.
      if (unlessRuns) await refuseWhereItRuns(tx, identity, gone);
      // A process that still has it goes on with its listeners, and is shown.
      await tx.run(sql`delete from daybook_app_instance where ${ofInstance(identity)}
        and (status in ('failed', 'stopped') or session_seq ${anyOf("integer", gone)}
          or session_seq in (select seq from daybook_session where status <> 'running'))`);
    },
    { tenant },
  );
  await cancelFires(engine, tenant, beginOf(identity)).catch(() => undefined);
  return history.size;
}

async function refuseWhereItRuns(tx: Tx, identity: InstanceIdentity, gone: readonly number[]): Promise<void> {
  const one = await tx.get<Process>(sql`select id as "sessionId", host, pid from daybook_session
    where status = 'running' and not (seq ${anyOf("integer", gone)})
      and seq in (select session_seq from daybook_app_instance where ${ofInstance(identity)} and status in ('starting', 'running'))
    order by seq limit 1`);
  if (one !== undefined) throw runs(identity.app, identity.instance, one);
}

/** The instances that an app had beyond its last one now. */
export async function surplusOf(store: Store, tenant: string, key: string, instances: number): Promise<number[]> {
  const rows = await store.read<{ index: number }>(sql`select distinct instance_index as "index"
    from daybook_app_instance where tenant_id = ${tenant} and app_key = ${key} and instance_index >= ${instances}`);
  return rows.map(({ index }) => index);
}
