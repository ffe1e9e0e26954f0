// Writes what a completed setup registered, with its schedules, and retires or removes what it registers no more. It is one
// transaction, so after a power failure the book has the registrations of one setup or of the other.
import { sql } from "../storage/sql.ts";
import type { Tx, Store } from "../storage/store.ts";
import { anyOf, excluded, forUpdate, greatest, oneRow } from "../storage/word.ts";
import { hasHistory } from "../telemetry/run.ts";
import type { CheckedSchedule } from "../schedules/options.ts";
import { retireSchedule, upsertSchedule } from "../schedules/write-schedule.ts";
import { nameOf, type InstanceIdentity, type Registration, type RegistrationKind } from "./registration.ts";
import { safeJson } from "./safe-json.ts";
import type { Source } from "./source.ts";

/** A registration with what was prepared before the transaction. */
export type Ready = {
  readonly registration: Registration;
  readonly source: Source;
  readonly schedule: CheckedSchedule | null;
};

type Known = { readonly name: string; readonly kind: RegistrationKind };

/** `withHistory` has the names that have ever run. */
export async function writeRegistrations(
  tx: Tx,
  identity: InstanceIdentity,
  ready: readonly Ready[],
  withHistory: ReadonlySet<string>,
): Promise<void> {
  const { tenant, app, instance } = identity;
  // By name: everything that locks several registrations locks them in this order.
  const sorted = ready.toSorted((a, b) => (a.registration.name < b.registration.name ? -1 : 1));
  const known = await tx.all<Known>(sql`select name, kind from daybook_registration
    where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance} order by name ${forUpdate}`);
  for (const each of sorted) await upsert(tx, identity, each);
  const kinds = new Map(sorted.map(({ registration: { name, does } }) => [name, does.kind]));
  const gone = known.filter(({ name }) => !kinds.has(name)).map(({ name }) => name);
  await letGo(tx, identity, gone, withHistory);
  const scheduled = known.filter(({ name, kind }) => kind === "schedule" && kinds.get(name) !== "schedule");
  for (const { name } of scheduled) await retireSchedule(tx, nameOf({ ...identity, name }));
  for (const { registration, schedule } of sorted) {
    if (schedule !== null) await upsertSchedule(tx, nameOf({ ...identity, name: registration.name }), schedule);
  }
}

async function upsert(tx: Tx, { tenant, app, instance }: InstanceIdentity, ready: Ready): Promise<void> {
  const { registration, source } = ready;
  const { does, settings, name, handlerMethod, args, kwargs } = registration;
  const live = does.kind === "listener" ? does.live : null;
  const trigger = does.kind === "schedule" ? does.trigger : null;
  const row = {
    kind: does.kind,
    handler_method: handlerMethod,
    topic: live === null ? null : live.topics.join(", "),
    debounce_ms: live?.debounceMs ?? null,
    throttle_ms: live?.throttleMs ?? null,
    once: live?.once === true ? 1 : 0,
    priority: Number(settings["priority"] ?? 0),
    predicate: live?.where?.describe() ?? null,
    trigger_type: trigger?.type ?? null,
    trigger_value: trigger?.value ?? null,
    repeat: trigger?.repeat === true ? 1 : 0,
    args,
    kwargs,
    settings: safeJson(settings),
    source_location: source.location,
    registration_source: source.text,
  };
  const first = { first_registered_at: tx.now, last_registered_at: tx.now };
  const identity = { tenant_id: tenant, id: tx.ids(), app_key: app, instance_index: instance, name };
  await tx.run(sql`insert into daybook_registration as registration ${oneRow({ ...identity, ...row, ...first })}
    on conflict (tenant_id, app_key, instance_index, name) do update set ${excluded(Object.keys(row))}, retired_at = null,
      last_registered_at = ${greatest}(excluded.last_registered_at, registration.last_registered_at)`);
}

async function letGo(
  tx: Tx,
  { tenant, app, instance }: InstanceIdentity,
  gone: readonly string[],
  withHistory: ReadonlySet<string>,
): Promise<void> {
  const [kept, removed] = [gone.filter((name) => withHistory.has(name)), gone.filter((name) => !withHistory.has(name))];
  if (kept.length > 0) {
    await tx.run(sql`update daybook_registration set retired_at = coalesce(retired_at, ${tx.now})
      where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance} and name ${anyOf("text", kept)}`);
  }
  if (removed.length > 0) {
    await tx.run(sql`delete from daybook_registration
      where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance} and name ${anyOf("text", removed)}`);
  }
}

/** Of the names in the book that a setup did not register, those that have runs. */
export async function namesWithHistory(
  store: Store,
  { tenant, app, instance }: InstanceIdentity,
  registered: ReadonlySet<string>,
): Promise<Set<string>> {
  const known = await store.read<{ name: string }>(sql`select name from daybook_registration
    where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance}`);
  const found = new Set<string>();
  for (const { name } of known) {
    if (registered.has(name)) continue;
    if (await hasHistory(store, tenant, { app, instance, registration: name })) found.add(name);
  }
  return found;
}
