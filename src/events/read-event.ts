// Reads events: one with its deliveries, a page of them, and the tree of what an event caused.
import { notFound, type DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkPage, cutPage, type Page } from "../core/page.ts";
import { refuseUnknownFilter } from "../core/suggest.ts";
import { timeMs, type TimeInput } from "../core/time.ts";
import { makeEach } from "../storage/make-each.ts";
import { joinSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { jobNow, type JobStatus } from "../jobs/job.ts";
import type { DeadLetterStatus } from "./dead-letter.ts";
import { toInfo, type EventInfo, type EventRow } from "./event.ts";
import { deliveryName } from "./listener.ts";
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

export type EventPage = Page<EventRecord>;

export type EventTree = EventInfo & { readonly caused: readonly EventTree[] };

export async function readEvent(store: Store, tenant: string, id: string): Promise<EventRecord> {
  const row = await findEvent(store, tenant, id);
  return toRecord(row, await readDeliveries(store, tenant, [row]));
}

export async function findEvent(store: Store, tenant: string, id: string): Promise<EventRow> {
  const [row] = await store.read<EventRow>(sql`select * from daybook_event where tenant_id = ${tenant} and id = ${id}`);
  if (row !== undefined) return row;
  throw noEvent(id);
}

function noEvent(id: string): DaybookError {
  return notFound(`there is no event ${id}`, { id });
}

/** The newest first. A page of a pattern may hold fewer than its limit although there are more. */
export async function listEvents(store: Store, tenant: string, filter: EventFilter): Promise<EventPage> {
  refuseUnknownFilter(filter, ["topic", "since", "until", "limit", "after"], "the list of events");
  const { limit, after } = checkPage(filter);
  const { rows, more } = await store.readPage<EventRow>(
    sql`select * from daybook_event event where ${whichEvents(tenant, filter)} and seq < ${after ?? Number.MAX_SAFE_INTEGER}
      order by seq desc limit ${limit + 1}`,
  );
  const page = cutPage(rows, limit, (row) => row.seq, undefined, more || rows.length > limit);
  const seen = page.items.filter((row) => filter.topic === undefined || matchesTopic(filter.topic, row.topic));
  const deliveries = await readDeliveries(store, tenant, seen);
  return { items: await makeEach(seen, (row) => toRecord(row, deliveries)), next: page.next };
}

/** The events of a filter. Of a pattern, SQL compares only the part before the first wildcard; `matchesTopic` does the rest. */
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

/** The whole chain that this event belongs to, as a tree from its root. */
export async function readLineage(store: Store, tenant: string, id: string): Promise<EventTree> {
  const { root_event_id: root } = await findEvent(store, tenant, id);
  const rows =
    await store.readHeavy<EventRow>(sql`select * from daybook_event where tenant_id = ${tenant} and id = ${root}
    union all select * from daybook_event where tenant_id = ${tenant} and root_event_id = ${root} and chain_depth > 0
    order by seq limit ${limits.lineageEventsMax}`);
  // Retention may have removed an event's parent: the event then hangs under the root.
  const known = new Set(rows.map((row) => row.id));
  const others = rows.filter((row) => row.id !== root);
  const children = Map.groupBy(others, ({ parent_event_id: parent }) =>
    parent !== null && known.has(parent) ? parent : root,
  );
  const first = rows.find((row) => row.id === root) ?? rows[0];
  if (first === undefined) throw noEvent(id);
  const grow = (row: EventRow): EventTree => ({ ...toInfo(row), caused: (children.get(row.id) ?? []).map(grow) });
  return grow(first);
}

function toRecord(row: EventRow, all: ReadonlyMap<number, readonly Row[]>): EventRecord {
  const deliveries = (all.get(row.seq) ?? []).map(toDelivery);
  const payload = JSON.parse(row.payload) as unknown;
  return { ...toInfo(row), payload, status: overallStatus(row.deliveries, deliveries), deliveries };
}

/** What became of one delivery, by the last job of its chain. `acked`, `skipped` and `discarded` are ends. */
export type DeliveryStatus = "pending" | "claimed" | "acked" | "dead_lettered" | "skipped" | "discarded";
export type EventStatus = "dead_lettered" | "acked" | "claimed" | "pending" | "unheard";

export type DeliveryRecord = {
  readonly listener: string;
  readonly status: DeliveryStatus;
  /** The last job of its chain. */
  readonly jobId: string;
  readonly attempts: number;
  /** Why it waits, if it does. */
  readonly waitsFor: string | null;
  readonly availableAt: number;
  readonly endedAt: number | null;
  /** The last failure. */
  readonly error: { readonly type: string; readonly message: string } | null;
  readonly deadLetterId: string | null;
};

type Row = Omit<DeliveryRecord, "status" | "error"> & {
  readonly eventSeq: number;
  readonly status: JobStatus;
  readonly errorType: string | null;
  readonly errorMessage: string | null;
  readonly letterStatus: DeadLetterStatus | null;
};

/** The deliveries of these events, by the event's number, sorted by the listener's name. */
async function readDeliveries(store: Store, tenant: string, events: readonly EventRow[]): Promise<Map<number, Row[]>> {
  if (events.length === 0) return new Map();
  const seqs = events.map(({ seq }) => seq);
  const prefix = deliveryName("").length + 1;
  const rows = await store.readHeavy<Row>(sql`
    with recursive chain (seq) as (
      select seq from daybook_job job where tenant_id = ${tenant} and kind = 'delivery' and retry_of is null
        and kind_seq ${anyOf("integer", seqs)}
      union all select job.seq from chain cross join daybook_job job where job.retry_of = chain.seq)
    select substr(job.name, ${prefix}) as listener, job.status, job.id as "jobId", job.attempt as attempts,
      job.waits_for as "waitsFor", job.available_at as "availableAt", job.finished_at as "endedAt",
      letter.id as "deadLetterId", job.kind_seq as "eventSeq", letter.status as "letterStatus",
      coalesce(run.error_type, before.error_type) as "errorType",
      coalesce(run.error_message, before.error_message) as "errorMessage"
    from chain cross join ${jobNow}
    left join daybook_run run on run.job_seq = job.seq
    left join daybook_job parent on parent.seq = job.retry_of
    left join daybook_run before on before.job_seq = parent.seq and run.id is null
    left join daybook_listener listener on listener.tenant_id = job.tenant_id and listener.name = substr(job.name, ${prefix})
    left join daybook_dead_letter letter on letter.tenant_id = job.tenant_id and letter.event_seq = job.kind_seq
      and letter.listener_seq = listener.seq
    where job.seq = chain.seq and not exists (select 1 from daybook_job child where child.retry_of = job.seq)
    order by job.kind_seq, job.name`);
  return Map.groupBy(rows, ({ eventSeq }) => eventSeq);
}

function toDelivery(row: Row): DeliveryRecord {
  const { eventSeq: _event, letterStatus: _letter, errorType: type, errorMessage: message, ...rest } = row;
  return { ...rest, status: statusOf(row), error: type === null ? null : { type, message: message ?? "" } };
}

const openStatus = { completed: "acked", running: "claimed", waiting: "pending", queued: "pending" } as const;

function statusOf({ status, letterStatus: letter }: Row): DeliveryStatus {
  if (status in openStatus) return openStatus[status as keyof typeof openStatus];
  if (letter === "dead" || letter === "redriving") return "dead_lettered";
  return letter === "discarded" && status !== "skipped" ? "discarded" : "skipped";
}

const ends: ReadonlySet<DeliveryStatus> = new Set(["acked", "skipped", "discarded"]);

/** The status of a whole event: dead_lettered before acked (all deliveries have ended) before claimed before pending; unheard when
 *  no listener heard it. `made` is how many deliveries were made; those that retention removed had ended. */
function overallStatus(made: number, deliveries: readonly Pick<DeliveryRecord, "status">[]): EventStatus {
  if (deliveries.some(({ status }) => status === "dead_lettered")) return "dead_lettered";
  if (made + deliveries.length === 0) return "unheard";
  if (deliveries.every(({ status }) => ends.has(status))) return "acked";
  return deliveries.some(({ status }) => status === "claimed") ? "claimed" : "pending";
}
