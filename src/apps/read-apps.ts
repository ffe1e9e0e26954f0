// Reads apps, whichever process runs them: their instances, and what these registered.
import { noSuch } from "../core/suggest.ts";
import { shape } from "../storage/shape.ts";
import { sql } from "../storage/sql.ts";
import type { Row, Store } from "../storage/store.ts";
import type { RunStatus } from "../telemetry/run.ts";
import { goneSessions } from "../telemetry/session.ts";
import { checkAppKey } from "./define.ts";
import type { InstanceStatus } from "./instance.ts";
import type { RegistrationKind, Settings } from "./registration.ts";

/** An instance as one process has it. */
export type AppProcess = {
  readonly sessionId: string;
  /** Null for a tenant: they concern all tenants of the process. */
  readonly host: string | null;
  readonly pid: number | null;
  /** `failed`: its setup threw or took too long; `error` says why. `stopped` also when the process has ended. */
  readonly status: InstanceStatus;
  /** `at` is where in the user's files: `apps/lights.ts:12`. */
  readonly error: {
    readonly type: string;
    readonly message: string;
    readonly trace: string | null;
    readonly at: string | null;
  } | null;
  readonly changedAt: number;
};

/** An instance: what the process says of it that got furthest, and what each of them says. */
export type AppInstance = Pick<AppProcess, "sessionId" | "status" | "error" | "changedAt"> & {
  readonly index: number;
  readonly registrations: Registrations;
  /** The processes that have it now; when none has, the last one that had. */
  readonly processes: readonly AppProcess[];
};

/** How many there are, without retired ones. */
type Registrations = { readonly listeners: number; readonly schedules: number; readonly jobs: number };

export type AppRecord = {
  readonly key: string;
  readonly instances: readonly AppInstance[];
  /** Those of all its instances together. */
  readonly registrations: Registrations;
};

export type RegistrationRecord = {
  readonly id: string;
  readonly instance: number;
  readonly name: string;
  readonly kind: RegistrationKind;
  /** The name of its function. */
  readonly handler: string;
  /** What the handler of a schedule is given, as far as it has JSON; null for others. */
  readonly params: unknown;
  /** Its options as plain values. */
  readonly settings: Settings;
  /** `apps/lights.ts:42`. */
  readonly location: string;
  /** The source text of the call that made it, if it could be found. */
  readonly source: string | null;
  readonly firstRegisteredAt: number;
  readonly lastRegisteredAt: number;
  /** When a setup first left it out; null while it is registered. */
  readonly retiredAt: number | null;
  /** Its latest run that is kept. */
  readonly lastRun: { readonly id: string; readonly status: RunStatus; readonly endedAt: number } | null;
  /** When its schedule is next due; null for others, and for one that is paused or over. */
  readonly nextAt: number | null;
};

export type AppDetails = AppRecord & { readonly registered: readonly RegistrationRecord[] };

type ProcessRead = AppProcess & { readonly key: string; readonly index: number; readonly sessionStatus: string };

/** By key. There are only as many apps as a program defines, so they are not paged. `seenBy` is the tenant that asks, or null for the
 *  owner of the whole book. */
export async function listApps(store: Store, tenant: string, seenBy: string | null = null): Promise<AppRecord[]> {
  const rows = await store.readHeavy<Row>(sql`select app_instance.app_key as key, instance_index as "index",
      app_instance.status, app_instance.error_type as "error.type", app_instance.error_message as "error.message",
      app_instance.error_trace as "error.trace", app_instance.error_at as "error.at", session.id as "sessionId",
      session.host, session.pid, session.status as "sessionStatus", changed_at as "changedAt"
    from daybook_app_instance app_instance join daybook_session session on session.seq = app_instance.session_seq
    where app_instance.tenant_id = ${tenant} order by app_key, instance_index, changed_at desc, app_instance.seq desc`);
  const counts =
    await store.readHeavy<Counted>(sql`select app_key as key, instance_index as "index", kind, count(*) as count
    from daybook_registration where tenant_id = ${tenant} and retired_at is null group by app_key, instance_index, kind`);
  const gone = new Set((await goneSessions(store)).map(({ id }) => id));
  return [...Map.groupBy(shape<ProcessRead>(rows), (row) => row.key)].map(([key, all]) => {
    const ofApp = counts.filter((each) => each.key === key);
    const instances = [...Map.groupBy(all, ({ index }) => index)].map(([index, said]) => ({
      ...instanceOf(index, said, gone, seenBy),
      registrations: countOf(ofApp.filter((each) => each.index === index)),
    }));
    return { key, instances, registrations: countOf(ofApp) };
  });
}

type Counted = {
  readonly key: string;
  readonly index: number;
  readonly kind: RegistrationKind;
  readonly count: number;
};

function countOf(counts: readonly Counted[]): Registrations {
  const of = (kind: RegistrationKind): number =>
    counts.reduce((sum, each) => (each.kind === kind ? sum + each.count : sum), 0);
  return { listeners: of("listener"), schedules: of("schedule"), jobs: of("job") };
}

const furthest: readonly InstanceStatus[] = ["running", "starting", "failed", "stopped"];

function instanceOf(
  index: number,
  said: readonly ProcessRead[],
  gone: ReadonlySet<string>,
  seenBy: string | null,
): Omit<AppInstance, "registrations"> {
  const all = said.map(({ key: _key, index: _index, sessionStatus, ...process }) => {
    const lives = sessionStatus === "running" && !gone.has(process.sessionId);
    const status = lives || process.status === "failed" ? process.status : "stopped";
    const where = seenBy === null ? {} : { host: null, pid: null };
    return { lives, process: { ...process, ...where, status } };
  });
  const living = all.filter(({ lives }) => lives);
  const processes = (living.length > 0 ? living : all.slice(0, 1)).map(({ process }) => process);
  const [first] = processes.toSorted((a, b) => furthest.indexOf(a.status) - furthest.indexOf(b.status));
  const { sessionId, status, error, changedAt } = first as AppProcess;
  return { index, status, error, sessionId, changedAt, processes };
}

/** A live listener that an instance registered and that hears now, in one process or several. */
export type AppListener = {
  readonly app: string;
  readonly instance: number;
  readonly name: string;
  readonly topics: readonly string[];
  /** What it asks of an event, in words. */
  readonly where: string | null;
  /** The sessions of the processes in which it hears. */
  readonly sessionIds: readonly string[];
};

/** Those of apps that run, whichever process runs them, by app, instance and name. */
export async function listAppListeners(store: Store, tenant: string): Promise<AppListener[]> {
  const rows =
    await store.readHeavy<Row>(sql`select registration.app_key as app, registration.instance_index as instance,
      registration.name, replace(registration.topic, ', ', ${"\n"}) as "topics lines", registration.predicate as "where",
      session.id as "sessionId"
    from daybook_registration registration join daybook_app_instance app_instance
      on app_instance.tenant_id = registration.tenant_id and app_instance.app_key = registration.app_key
        and app_instance.instance_index = registration.instance_index and app_instance.status = 'running'
    join daybook_session session on session.seq = app_instance.session_seq and session.status = 'running'
    where registration.tenant_id = ${tenant} and registration.kind = 'listener' and registration.retired_at is null
    order by 1, 2, 3, session.seq`);
  const gone = new Set((await goneSessions(store)).map(({ id }) => id));
  type Hearing = Omit<AppListener, "sessionIds"> & { readonly sessionId: string };
  const hearing = shape<Hearing>(rows).filter(({ sessionId }) => !gone.has(sessionId));
  const groups = Map.groupBy(hearing, ({ app, instance, name }) => JSON.stringify([app, instance, name]));
  return [...groups.values()].flatMap((all) =>
    all.slice(0, 1).map(({ sessionId: _first, ...one }) => ({ ...one, sessionIds: all.map((each) => each.sessionId) })),
  );
}

/** One app, with everything that its instances registered, including what is retired. */
export async function readApp(
  store: Store,
  tenant: string,
  key: string,
  seenBy: string | null = null,
): Promise<AppDetails> {
  checkAppKey(key);
  const all = await listApps(store, tenant, seenBy);
  const found = all.find((each) => each.key === key);
  const registered = await readRegistrations(store, tenant, key);
  if (found !== undefined) return { ...found, registered };
  const known = all.map((each) => each.key);
  // Of a removed app what has run is still there.
  if (registered.length === 0) throw noSuch("there is no app", key, known, { app: key });
  return { key, instances: [], registrations: { listeners: 0, schedules: 0, jobs: 0 }, registered };
}

async function readRegistrations(store: Store, tenant: string, key: string): Promise<RegistrationRecord[]> {
  // The condition of the last run is spelt like the index.
  const rows = await store.readHeavy<Row>(sql`select registration.id, instance_index as instance, registration.name,
      registration.kind, handler_method as handler, settings as "settings json", source_location as location,
      case when registration.kind = 'schedule' then case when args = '[]' then kwargs else args end end as "params json",
      registration_source as source, first_registered_at as "firstRegisteredAt",
      last_registered_at as "lastRegisteredAt", retired_at as "retiredAt", last.id as "lastRun.id",
      last.status as "lastRun.status", last.ended_at as "lastRun.endedAt", schedule.next_at as "nextAt"
    from daybook_registration registration
    left join daybook_run last on last.seq = (select run.seq from daybook_run run
      where run.tenant_id = registration.tenant_id and coalesce(run.registration, run.name) = registration.name
        and (run.job_seq is null or run.registration is not null) and run.app = registration.app_key
        and run.instance = registration.instance_index order by run.seq desc limit 1)
    left join daybook_schedule schedule on registration.kind = 'schedule' and schedule.tenant_id = registration.tenant_id
      and schedule.name = registration.tenant_id || '/' || app_key || '/' || instance_index || '/' || registration.name
    where registration.tenant_id = ${tenant} and app_key = ${key} order by instance_index, registration.name`);
  return shape(rows);
}
