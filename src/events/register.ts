// Writes a program's listeners into the book: the new ones and those whose settings have changed. Where a listener begins is
// decided once, when it is first seen. A listener that a program no longer lists stays and goes on collecting.
import { invalid, notFound } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { timeMs } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf, assigned, excluded, oneRow } from "../storage/word.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import { beginCatchUp } from "./catch-up.ts";
import type { AnyListener, StartFrom } from "./define.ts";
import { closeListeners, lastSeq, newTenants, stampListeners, type ListenerRow } from "./listener.ts";

type Settings = ReturnType<typeof settingsOf>;

export async function registerListeners(
  store: Store,
  tenant: string,
  listeners: readonly AnyListener[],
): Promise<void> {
  if (listeners.length === 0) return;
  const names = listeners.map(({ name }) => name);
  const rows = await store.read<ListenerRow>(sql`select * from daybook_listener where name ${anyOf("text", names)}`);
  const isKnown = (each: AnyListener, of: string): boolean => {
    const row = rows.find(({ tenant_id, name }) => tenant_id === of && name === each.name);
    return row !== undefined && isSame(row, settingsOf(each));
  };
  // Most programs start with nothing new: then no publisher has to wait.
  const news = listeners.filter((each) => !isKnown(each, tenant) || (each.allTenants && !isKnown(each, newTenants)));
  if (news.length > 0) await store.write((tx) => registerAll(tx, news), { tenant });
  // A listener may have lost its catch-up job, or its process ended before it made one: make one now.
  const stuck = rows.filter((row) => row.state === "catching_up" && (row.tenant_id === tenant || row.for_all === 1));
  if (stuck.length > 0) await store.write((tx) => resumeCatchUp(tx, stuck), { tenant });
}

async function registerAll(tx: Tx, listeners: readonly AnyListener[]): Promise<void> {
  await closeListeners(tx);
  for (const each of listeners) {
    await register(tx, each, tx.tenant);
    if (!each.allTenants) continue;
    for (const tenant of new Set([...(await tenantsFor(tx, each.name)), newTenants])) {
      const old = await find(tx, each.name, tenant);
      // A tenant's own listener of that name stays.
      const isOwn = old !== undefined && old.for_all === 0 && old.state !== "removed";
      if (tenant !== tx.tenant && !isOwn) await register(tx, each, tenant);
    }
  }
  await stampListeners(tx);
}

/** The tenants that get a listener for all tenants: those that have published an event, or that have the listener already.
 *  One index seek for each tenant, however many events there are. */
async function tenantsFor(tx: Tx, name: string): Promise<string[]> {
  const rows = await tx.all<{ tenant: string }>(sql`with recursive said (tenant) as (
      select min(tenant_id) from daybook_event
      union all select (select min(event.tenant_id) from daybook_event event where event.tenant_id > said.tenant)
        from said where said.tenant is not null)
    select tenant from said where tenant is not null
    union select tenant_id from daybook_listener where name = ${name} and for_all = 1 order by 1`);
  return rows.map((row) => row.tenant);
}

async function register(tx: Tx, listener: AnyListener, tenant: string): Promise<void> {
  const settings = settingsOf(listener);
  // Here, not in the first publish: a transaction that makes a lane blocks the others that need it until it commits.
  if (tenant !== newTenants) await laneOf(tx, tenant, settings.queue);
  const old = await find(tx, listener.name, tenant);
  if (old !== undefined && old.state !== "removed") {
    const changed = assigned({ ...settings, updated_at: tx.now });
    return void (await tx.run(sql`update daybook_listener set ${changed} where seq = ${old.seq}`));
  }
  const last = await lastSeq(tx, tenant);
  const start = await startOf(tx, listener, last);
  const behind = start.starts_from !== "now" && start.starts_seq < last;
  // A listener that was removed keeps its row and its history under its name.
  const row = {
    ...settings,
    ...start,
    state: behind ? "catching_up" : "live",
    heard_seq: behind ? start.starts_seq : last,
    heard_to: behind ? last : null,
    updated_at: tx.now,
  };
  await tx.run(sql`insert into daybook_listener
    ${oneRow({ tenant_id: tenant, name: listener.name, registered_at: tx.now, ...row })}
    on conflict (tenant_id, name) do update set ${excluded(Object.keys(row))}, removed_at = null`);
  const made = await find(tx, listener.name, tenant);
  if (behind && made !== undefined) await beginCatchUp(tx, made);
}

async function resumeCatchUp(tx: Tx, stuck: readonly ListenerRow[]): Promise<void> {
  for (const { name, tenant_id: tenant } of stuck) {
    const row = await find(tx, name, tenant);
    if (row?.state === "catching_up") await beginCatchUp(tx, row);
  }
}

async function find(tx: Tx, name: string, tenant: string): Promise<ListenerRow | undefined> {
  return tx.get<ListenerRow>(sql`select * from daybook_listener where tenant_id = ${tenant} and name = ${name}`);
}

type Start = Pick<ListenerRow, "starts_from" | "starts_at" | "starts_seq">;

async function startOf(tx: Tx, { name, from }: AnyListener, last: number): Promise<Start> {
  if (from === "now") return { starts_from: "now", starts_at: null, starts_seq: last };
  if (from === "beginning") return { starts_from: "beginning", starts_at: null, starts_seq: 0 };
  return positionOf(tx, from, `listener "${name}"`);
}

/** The position of a time or an event among all events: a listener hears what comes after `starts_seq`. */
export async function positionOf(tx: Tx, from: Exclude<StartFrom, string>, what: string): Promise<Start> {
  refuseUnknown(from, ["time", "event"], what);
  if ("time" in from) {
    const at = timeMs(from.time, "from.time");
    if (at > tx.now) {
      throw invalid(`${what} starts at a time that is ${at - tx.now} ms ahead: give a time that has passed, or "now"`);
    }
    return { starts_from: "time", starts_at: at, starts_seq: 0 };
  }
  const event = await tx.get<{ seq: number }>(
    sql`select seq from daybook_event where tenant_id = ${tx.tenant} and id = ${from.event}`,
  );
  if (event === undefined) {
    throw notFound(`${what} starts from event ${from.event}, which is not in the book`, { id: from.event });
  }
  return { starts_from: "event", starts_at: null, starts_seq: event.seq - 1 };
}

function settingsOf(listener: AnyListener) {
  return {
    topics: JSON.stringify(listener.topics),
    predicate: listener.where?.describe() ?? null,
    queue: listener.queue,
    ordered: listener.ordered ? 1 : 0,
    attempts: listener.attempts,
    backoff: toJson(listener.backoff, { what: "backoff" }),
    timeout_ms: listener.timeoutMs,
    losses: listener.losses,
    concurrency: listener.concurrency,
    for_all: listener.allTenants ? 1 : 0,
  };
}

function isSame(row: ListenerRow, settings: Settings): boolean {
  if (row.state === "removed") return false;
  return (Object.keys(settings) as (keyof Settings)[]).every((name) => row[name] === settings[name]);
}
