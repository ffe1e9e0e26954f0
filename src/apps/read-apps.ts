// Reads apps, whichever process runs them: their instances, and what these registered.
import { noSuch } from "../core/suggest.ts";
import { shape } from "../storage/shape.ts";
import { sql } from "../storage/sql.ts";
import type { Row, Store } from "../storage/store.ts";
import { goneSessions } from "../telemetry/session.ts";
import { checkAppKey } from "./define.ts";
import type { InstanceStatus } from "./instance.ts";
import type { RegistrationKind, Settings } from "./registration.ts";

export type AppInstance = {
  readonly index: number;
  /** `failed`: its setup threw or took too long; `error` says why. `stopped` also when its process has ended. */
  readonly status: InstanceStatus;
  readonly error: { readonly type: string; readonly message: string; readonly trace: string | null } | null;
  readonly sessionId: string;
  readonly changedAt: number;
};

export type AppRecord = {
  readonly key: string;
  readonly instances: readonly AppInstance[];
  /** How many registrations it has, without retired ones. */
  readonly registrations: { readonly listeners: number; readonly schedules: number; readonly jobs: number };
};

export type RegistrationRecord = {
  readonly id: string;
  readonly instance: number;
  readonly name: string;
  readonly kind: RegistrationKind;
  /** The name of its function. */
  readonly handler: string;
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
};

export type AppDetails = AppRecord & { readonly registered: readonly RegistrationRecord[] };

type InstanceRead = AppInstance & { readonly key: string; readonly sessionStatus: string };

/** By key. There are only as many apps as a program defines, so they are not paged. */
export async function listApps(store: Store, tenant: string): Promise<AppRecord[]> {
  const rows = await store.readHeavy<Row>(sql`select app_instance.app_key as key, instance_index as "index",
      app_instance.status, app_instance.error_type as "error.type", app_instance.error_message as "error.message",
      app_instance.error_trace as "error.trace", session.id as "sessionId", session.status as "sessionStatus",
      changed_at as "changedAt"
    from daybook_app_instance app_instance join daybook_session session on session.seq = app_instance.session_seq
    where app_instance.tenant_id = ${tenant} order by app_key, instance_index`);
  const counts = await store.readHeavy<{ of: string; count: number }>(sql`select app_key || '/' || kind as "of",
      count(*) as count
    from daybook_registration where tenant_id = ${tenant} and retired_at is null group by app_key, kind`);
  const gone = new Set((await goneSessions(store)).map(({ id }) => id));
  const count = (key: string, kind: RegistrationKind): number =>
    counts.find((row) => row.of === `${key}/${kind}`)?.count ?? 0;
  return [...Map.groupBy(shape<InstanceRead>(rows), ({ key }) => key)].map(([key, instances]) => ({
    key,
    instances: instances.map((instance) => asItIs(instance, gone)),
    registrations: {
      listeners: count(key, "listener"),
      schedules: count(key, "schedule"),
      jobs: count(key, "job"),
    },
  }));
}

function asItIs({ key: _key, sessionStatus, ...instance }: InstanceRead, gone: ReadonlySet<string>): AppInstance {
  const runs = sessionStatus === "running" && !gone.has(instance.sessionId);
  return runs || instance.status === "failed" ? instance : { ...instance, status: "stopped" };
}

/** One app, with everything that its instances registered, including what is retired. */
export async function readApp(store: Store, tenant: string, key: string): Promise<AppDetails> {
  checkAppKey(key);
  const all = await listApps(store, tenant);
  const found = all.find((each) => each.key === key);
  const known = all.map((each) => each.key);
  if (found === undefined) throw noSuch("there is no app", key, known, { app: key });
  const rows = await store.readHeavy<Row>(sql`select id, instance_index as instance, name, kind,
      handler_method as handler, settings as "settings json", source_location as location,
      registration_source as source, first_registered_at as "firstRegisteredAt",
      last_registered_at as "lastRegisteredAt", retired_at as "retiredAt"
    from daybook_registration where tenant_id = ${tenant} and app_key = ${key} order by instance_index, name`);
  return { ...found, registered: shape(rows) };
}
