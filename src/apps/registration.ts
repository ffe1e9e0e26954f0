// What an instance registers in its setup (a listener, a schedule or a job, with its function), and how the book keeps it.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf, excluded, forUpdate, greatest, oneRow } from "../storage/word.ts";
import type { LiveDefinition } from "../events/live/define.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { CheckedSchedule, ScheduleOptions } from "../schedules/options.ts";
import { retireSchedule, upsertSchedule } from "../schedules/write-schedule.ts";
import { hasHistory } from "../telemetry/run.ts";
import { safeJson } from "./safe-json.ts";
import { locationOf, type CallSite, type Source } from "./source.ts";

export type RegistrationKind = "listener" | "schedule" | "job";

/** The options of a registration as plain values, for keeping and comparing. */
export type Settings = Readonly<Record<string, string | number | boolean | null>>;

export type Registration = {
  readonly name: string;
  readonly handlerMethod: string;
  readonly site: CallSite;
  readonly settings: Settings;
  /** Sorted JSON of what the handler of a schedule is given. */
  readonly args: string;
  readonly kwargs: string;
  readonly does: Does;
};

/** What it becomes once its setup is complete. */
export type Does =
  | { readonly kind: "listener"; readonly live: LiveDefinition }
  | { readonly kind: "schedule"; readonly job: AnyJob; readonly schedule: ScheduleOptions; readonly trigger: Trigger }
  | { readonly kind: "job"; readonly job: AnyJob };

export type Trigger = {
  /** Null for one that fires once. */
  readonly type: "cron" | "interval" | null;
  readonly value: string;
  readonly repeat: boolean;
};

/** The function's own name. */
export function methodOf(handler: { readonly name: string }): string {
  // A bound method has this word before its name.
  const name = handler.name.replace(/^(bound )+/, "");
  return name === "" ? "<anonymous>" : name;
}

/** How two registrations differ, in words: `debounce 1000 → 5000`. */
function differences(one: Registration, other: Registration): string[] {
  const [before, after] = [facts(one), facts(other)];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((key) => shown(before[key]) !== shown(after[key]))
    .map((key) => `${key} ${shown(before[key])} → ${shown(after[key])}`);
}

function facts({ does, settings, handlerMethod: handler, args, kwargs }: Registration): Settings {
  return { kind: does.kind, ...settings, handler, args, kwargs };
}

function shown(value: Settings[string] | undefined): string {
  return value === undefined || value === null ? "none" : String(value);
}

/** What identifies a registration across restarts: its tenant, app, instance and name. Every setup refreshes the rest. */
export type InstanceIdentity = { readonly tenant: string; readonly app: string; readonly instance: number };
export type Identity = InstanceIdentity & { readonly name: string };

/** The name under which the rooms below know it. Neither a tenant nor an app key has a slash, so two identities never share a
 *  name. It includes the tenant because a job definition serves every tenant, and this one must not. */
export function nameOf({ name, ...instance }: Identity): string {
  return checkName(`${beginOf(instance)}${name}`, "the whole name of the registration");
}

/** The prefix of all names of an instance. */
export function beginOf({ tenant, app, instance }: InstanceIdentity): string {
  return `${tenant}/${app}/${instance}/`;
}

/** What to do when the instance has the name already: refuse (default), keep the earlier one if its settings are the same, or
 *  replace it. */
export type IfExists = "error" | "skip" | "replace";

/** The registrations of one setup, by name. History follows a name, so an instance uses each name once. */
export type Roster = {
  add(registration: Registration, ifExists: IfExists): Registration;
  readonly all: readonly Registration[];
};

export function createRoster(what: string): Roster {
  const known = new Map<string, Registration>();
  return {
    get all() {
      return [...known.values()];
    },
    add(registration, ifExists) {
      const { name } = registration;
      const before = known.get(name);
      if (before !== undefined && ifExists === "error") throw taken(what, before, registration);
      if (before !== undefined && ifExists === "skip") return keep(what, before, registration);
      if (before === undefined && known.size >= limits.appRegistrationsMax) {
        throw invalid(`${what} has ${known.size} registrations, the most that are allowed: is it a loop without end?`);
      }
      known.set(name, registration);
      return registration;
    },
  };
}

function taken(what: string, before: Registration, again: Registration): Error {
  const places = { first: locationOf(before.site), second: locationOf(again.site) };
  return invalid(
    `${what} registers ${quote(again.name)} twice: at ${places.first} and at ${places.second}. Give one of them ` +
      `another name, or say ifExists: "skip" or "replace"`,
    { details: { name: again.name, ...places } },
  );
}

function keep(what: string, before: Registration, again: Registration): Registration {
  const changed = differences(before, again);
  if (changed.length === 0) return before;
  const places = { first: locationOf(before.site), second: locationOf(again.site) };
  throw invalid(
    `${what} registers ${quote(again.name)} at ${places.second} with ifExists "skip", and other settings than at ` +
      `${places.first}: ${changed.join("; ")}. Make them the same, or say "replace"`,
    { details: { name: again.name, ...places, differences: changed } },
  );
}

export function checkIfExists(value: unknown): IfExists {
  if (value === undefined) return "error";
  if (value === "error" || value === "skip" || value === "replace") return value;
  throw invalid(`ifExists ${quote(value)} is not known: "error", "skip" or "replace"`);
}

/** A registration with what was prepared before the transaction. */
export type Ready = {
  readonly registration: Registration;
  readonly source: Source;
  readonly schedule: CheckedSchedule | null;
};

type Known = { readonly name: string; readonly kind: RegistrationKind };

/** Writes what a completed setup registered, with its schedules, and retires or removes what it registers no more. It is one
 *  transaction, so after a power failure the book has the registrations of one setup or of the other. `withHistory` has the
 *  names that have ever run. */
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
