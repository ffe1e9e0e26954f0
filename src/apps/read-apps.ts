// What a user asks about apps, of any process: their instances, and what these registered.
import { goneSessions } from "../telemetry/session.ts";
import { noSuch } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { checkAppKey } from "./define.ts";
import type { RegistrationKind } from "./registration.ts";
import type { InstanceStatus } from "./write-instance.ts";

export type AppInstance = {
  readonly index: number;
  /** `failed`: its setup threw or took too long, and `error` says why. `stopped` also when its process ended. */
  readonly status: InstanceStatus;
  readonly error: { readonly type: string; readonly message: string; readonly trace: string | null } | null;
  readonly sessionId: string;
  readonly changedAt: number;
};

export type AppRecord = {
  readonly key: string;
  readonly instances: readonly AppInstance[];
  /** How many things it registers; retired ones are not counted. */
  readonly registrations: { readonly listeners: number; readonly schedules: number; readonly jobs: number };
};

export type RegistrationRecord = {
  readonly id: string;
  readonly instance: number;
  readonly name: string;
  readonly kind: RegistrationKind;
  /** The own name of its function. */
  readonly handler: string;
  /** What it is set to, by the names of the options. */
  readonly settings: Readonly<Record<string, string | number | boolean | null>>;
  /** `apps/lights.ts:42`. */
  readonly location: string;
  /** The text of the call that made it, if it could be found. */
  readonly source: string | null;
  readonly firstRegisteredAt: number;
  readonly lastRegisteredAt: number;
  /** When it was registered no more; null while it is. */
  readonly retiredAt: number | null;
};

export type AppDetails = AppRecord & { readonly registered: readonly RegistrationRecord[] };

type InstanceRow = {
  app_key: string;
  instance_index: number;
  status: InstanceStatus;
  error_type: string | null;
  error_message: string | null;
  error_trace: string | null;
  session_id: string;
  session_status: string;
  changed_at: number;
};

/** By key. There are as many apps as somebody wrote, so they are not paged. */
export async function listApps(store: Store, tenant: string): Promise<AppRecord[]> {
  const rows = await store.readHeavy<InstanceRow>(sql`select app_instance.app_key, instance_index, app_instance.status,
      app_instance.error_type, app_instance.error_message, app_instance.error_trace, changed_at,
      session.id as session_id, session.status as session_status
    from daybook_app_instance app_instance join daybook_session session on session.seq = app_instance.session_seq
    where app_instance.tenant_id = ${tenant} order by app_key, instance_index`);
  const counts = await store.readHeavy<{ app_key: string; kind: RegistrationKind; count: number }>(sql`select app_key,
      kind, count(*) as count from daybook_registration
    where tenant_id = ${tenant} and retired_at is null group by app_key, kind`);
  const gone = new Set((await goneSessions(store)).map(({ id }) => id));
  const count = (key: string, kind: RegistrationKind): number =>
    Number(counts.find((row) => row.app_key === key && row.kind === kind)?.count ?? 0);
  return [...Map.groupBy(rows, (row) => row.app_key)].map(([key, instances]) => ({
    key,
    instances: instances.map((row) => toInstance(row, gone)),
    registrations: {
      ...{ listeners: count(key, "listener"), schedules: count(key, "schedule"), jobs: count(key, "job") },
    },
  }));
}

function toInstance(row: InstanceRow, gone: ReadonlySet<string>): AppInstance {
  const { error_type: type, error_message: message, error_trace: trace } = row;
  const runs = row.session_status === "running" && !gone.has(row.session_id);
  const isOver = !runs && row.status !== "failed";
  return {
    index: row.instance_index,
    status: isOver ? "stopped" : row.status,
    error: type === null ? null : { type, message: message ?? "", trace },
    sessionId: row.session_id,
    changedAt: row.changed_at,
  };
}

type RegistrationRow = {
  id: string;
  instance_index: number;
  name: string;
  kind: RegistrationKind;
  handler_method: string;
  settings: string;
  source_location: string;
  registration_source: string | null;
  first_registered_at: number;
  last_registered_at: number;
  retired_at: number | null;
};

/** One app, with all that its instances registered, also what is retired. */
export async function readApp(store: Store, tenant: string, key: string): Promise<AppDetails> {
  checkAppKey(key);
  const all = await listApps(store, tenant);
  const found = all.find((each) => each.key === key);
  const known = all.map((each) => each.key);
  if (found === undefined) throw noSuch("there is no app", key, known, { app: key });
  const rows =
    await store.readHeavy<RegistrationRow>(sql`select id, instance_index, name, kind, handler_method, settings,
      source_location, registration_source, first_registered_at, last_registered_at, retired_at
    from daybook_registration where tenant_id = ${tenant} and app_key = ${key} order by instance_index, name`);
  return { ...found, registered: rows.map(toRegistration) };
}

function toRegistration(row: RegistrationRow): RegistrationRecord {
  return {
    ...{ id: row.id, instance: row.instance_index, name: row.name, kind: row.kind, handler: row.handler_method },
    settings: JSON.parse(row.settings) as RegistrationRecord["settings"],
    ...{ location: row.source_location, source: row.registration_source },
    ...{ firstRegisteredAt: row.first_registered_at, lastRegisteredAt: row.last_registered_at },
    retiredAt: row.retired_at,
  };
}
