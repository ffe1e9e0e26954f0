// Looking at events: one with what became of it, lists, and the tree of what it caused.
import { checkCount } from "../core/count.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknownFilter } from "../core/suggest.ts";
import { notACursor } from "../core/page.ts";
import { timeMs, type TimeInput } from "../core/time.ts";
import { joinSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { toInfo, type EventInfo } from "./event-info.ts";
import type { EventRow } from "./event.ts";
import { overallStatus, readDeliveries, type DeliveryRecord, type EventStatus } from "./read-deliveries.ts";
import { checkPattern, matchesTopic } from "./topic.ts";

export type EventRecord = EventInfo & {
  readonly payload: unknown;
  readonly status: EventStatus;
  readonly deliveries: readonly DeliveryRecord[];
};

export type EventFilter = {
  /** A topic or a pattern. */
  readonly topic?: string;
  readonly since?: TimeInput;
  readonly until?: TimeInput;
  readonly limit?: number;
  readonly after?: string;
};

export type EventPage = { readonly items: readonly EventRecord[]; readonly next: string | null };

export type EventTree = EventInfo & { readonly caused: readonly EventTree[] };

export async function readEvent(store: Store, tenant: string, id: string): Promise<EventRecord> {
  const row = await findEvent(store, tenant, id);
  const deliveries = await readDeliveries(store, tenant, [row.seq]);
  return toRecord(row, deliveries.get(row.seq) ?? []);
}

async function findEvent(store: Store, tenant: string, id: string): Promise<EventRow> {
  const [row] = await store.read<EventRow>(sql`select * from daybook_event where tenant_id = ${tenant} and id = ${id}`);
  if (row !== undefined) return row;
  throw new DaybookError("not_found", `there is no event ${id}`, { details: { id } });
}

/** The newest first. A page of a pattern may hold fewer than its limit although there are more. */
export async function listEvents(store: Store, tenant: string, filter: EventFilter): Promise<EventPage> {
  refuseUnknownFilter(filter, ["topic", "since", "until", "limit", "after"], "the list of events");
  const { limit = limits.pageDefault, after } = filter;
  checkCount(limit, "limit", 1, limits.pageMax);
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
  if (!Number.isSafeInteger(before)) throw notACursor(after);
  const { rows, more } = await store.readPage<EventRow>(
    sql`select * from daybook_event event where ${whichEvents(tenant, filter)} and seq < ${before} order by seq desc limit ${limit + 1}`,
  );
  const page = rows.slice(0, limit);
  const seen = page.filter((row) => filter.topic === undefined || matchesTopic(filter.topic, row.topic));
  const deliveries = await readDeliveries(
    store,
    tenant,
    seen.map((row) => row.seq),
  );
  return {
    items: seen.map((row) => toRecord(row, deliveries.get(row.seq) ?? [])),
    next: rows.length > limit || more ? String(page.at(-1)?.seq) : null,
  };
}

/** The events of a filter; what a wildcard leaves open is for `matchesTopic` to say. */
export function whichEvents(tenant: string, { topic, since, until }: EventFilter): Sql {
  return joinSql([
    sql`tenant_id = ${tenant}`,
    ...(topic === undefined ? [] : [topicRange(checkPattern(topic))]),
    ...(since === undefined ? [] : [sql`and published_at >= ${timeMs(since, "since")}`]),
    ...(until === undefined ? [] : [sql`and published_at < ${timeMs(until, "until")}`]),
  ]);
}

function topicRange(pattern: string): Sql {
  const wild = pattern.split(".").findIndex((segment) => segment === "*" || segment === ">");
  if (wild < 0) return sql`and topic = ${pattern}`;
  const prefix = pattern.split(".").slice(0, wild).join(".");
  return prefix === "" ? sql`` : sql`and substr(topic, 1, ${prefix.length + 1}) = ${`${prefix}.`}`;
}

/** Everything that began with the root of this event, as a tree. */
export async function readLineage(store: Store, tenant: string, id: string): Promise<EventTree> {
  const { root_event_id: root } = await findEvent(store, tenant, id);
  const rows =
    await store.readHeavy<EventRow>(sql`select * from daybook_event where tenant_id = ${tenant} and id = ${root}
    union all select * from daybook_event where tenant_id = ${tenant} and root_event_id = ${root} and chain_depth > 0
    order by seq limit ${limits.lineageEventsMax}`);
  // What caused one may have been cleaned up; then it stands under the root.
  const known = new Set(rows.map((row) => row.id));
  const parentOf = (row: EventRow): string =>
    known.has(row.parent_event_id ?? "") ? (row.parent_event_id ?? "") : root;
  const children = Map.groupBy(
    rows.filter((row) => row.id !== root),
    parentOf,
  );
  const first = rows.find((row) => row.id === root) ?? rows[0];
  if (first === undefined) throw new DaybookError("not_found", `there is no event ${id}`, { details: { id } });
  const grow = (row: EventRow): EventTree => ({ ...toInfo(row), caused: (children.get(row.id) ?? []).map(grow) });
  return grow(first);
}

function toRecord(row: EventRow, deliveries: readonly DeliveryRecord[]): EventRecord {
  return {
    ...toInfo(row),
    payload: JSON.parse(row.payload) as unknown,
    status: overallStatus(row.deliveries, deliveries),
    deliveries,
  };
}
