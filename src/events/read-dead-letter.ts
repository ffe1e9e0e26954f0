// Dead letters as people see them.
import { checkCount } from "../core/count.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknownFilter } from "../core/suggest.ts";
import { notACursor } from "../core/page.ts";
import { joinSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import type { DeadLetterRow, DeadLetterStatus } from "./dead-letter.ts";

export type DeadLetterRecord = {
  readonly id: string;
  readonly status: DeadLetterStatus;
  readonly listener: string;
  readonly eventId: string;
  readonly topic: string;
  readonly payload: unknown;
  readonly rootEventId: string;
  readonly chainDepth: number;
  /** The last job of its delivery that failed. */
  readonly jobId: string;
  readonly attempts: number;
  readonly error: { readonly type: string; readonly message: string };
  readonly firstFailedAt: number;
  readonly failedAt: number;
  readonly redrives: number;
  readonly endedAt: number | null;
  readonly reason: string | null;
};

export type DeadLetterPage = { readonly items: readonly DeadLetterRecord[]; readonly next: string | null };

/** Letters that failed alike. */
export type DeadLetterGroup = {
  readonly listener: string;
  readonly error: { readonly type: string; readonly message: string };
  readonly count: number;
  readonly firstFailedAt: number;
  readonly lastFailedAt: number;
};

export type LetterFilter = {
  readonly listener?: string;
  readonly topic?: string;
  /** The group of an error: its type and, if you say so, its message. */
  readonly error?: { readonly type: string; readonly message?: string };
};

export function whichLetters(tenant: string, { listener, topic, error }: LetterFilter): Sql {
  return joinSql([
    sql`letter.tenant_id = ${tenant}`,
    ...(listener === undefined ? [] : [sql`and listener.name = ${listener}`]),
    ...(topic === undefined ? [] : [sql`and event.topic = ${topic}`]),
    ...(error === undefined ? [] : [sql`and letter.error_type = ${error.type}`]),
    ...(error?.message === undefined ? [] : [sql`and letter.error_message = ${error.message}`]),
  ]);
}

export function checkFilter(filter: LetterFilter): void {
  refuseUnknownFilter(filter, ["listener", "topic", "error"], "the filter of dead letters");
  if (filter.error !== undefined && typeof filter.error.type !== "string") {
    throw invalid('error is { type, message? }: give the "type" of the errors that are meant');
  }
}

export async function readLetter(store: Store, tenant: string, id: string): Promise<DeadLetterRecord> {
  const [row] = await store.read<LetterRow>(
    sql`${selectLetters} where letter.tenant_id = ${tenant} and letter.id = ${id}`,
  );
  if (row === undefined) throw new DaybookError("not_found", `there is no dead letter ${id}`, { details: { id } });
  return toRecord(row);
}

export async function readGroups(store: Store, tenant: string): Promise<DeadLetterGroup[]> {
  const rows = await store.readHeavy<GroupRow>(sql`select listener.name as listener, letter.error_type,
      letter.error_message, count(*) as count, min(letter.failed_at) as first_at, max(letter.failed_at) as last_at
    from daybook_dead_letter letter join daybook_listener listener on listener.seq = letter.listener_seq
    where letter.tenant_id = ${tenant} and letter.ended_at is null
    group by listener.name, letter.error_type, letter.error_message
    order by count(*) desc, max(letter.failed_at) desc limit ${limits.pageMax}`);
  return rows.map((row) => ({
    ...{ listener: row.listener, error: { type: row.error_type, message: row.error_message } },
    ...{ count: row.count, firstFailedAt: row.first_at, lastFailedAt: row.last_at },
  }));
}

type GroupRow = {
  listener: string;
  error_type: string;
  error_message: string;
  count: number;
  first_at: number;
  last_at: number;
};

type LetterRow = DeadLetterRow & {
  listener: string;
  event_id: string;
  topic: string;
  payload: string;
  root_event_id: string;
  chain_depth: number;
};

const selectLetters: Sql = sql`select letter.*, listener.name as listener, event.id as event_id, event.topic, event.payload,
    event.root_event_id, event.chain_depth
  from daybook_dead_letter letter join daybook_listener listener on listener.seq = letter.listener_seq
  join daybook_event event on event.seq = letter.event_seq`;

export async function listLetters(
  store: Store,
  tenant: string,
  filter: LetterFilter & { status?: DeadLetterStatus; limit?: number; after?: string },
): Promise<DeadLetterPage> {
  const { status, limit = limits.pageDefault, after, ...which } = filter;
  checkFilter(which);
  checkCount(limit, "limit", 1, limits.pageMax);
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
  if (!Number.isSafeInteger(before)) throw notACursor(after);
  const ended = status === undefined ? sql`and letter.ended_at is null` : sql`and letter.status = ${status}`;
  const { rows, more } = await store.readPage<LetterRow>(
    joinSql([
      sql`${selectLetters} where ${whichLetters(tenant, which)}`,
      ended,
      sql`and letter.seq < ${before} order by letter.seq desc limit ${limit + 1}`,
    ]),
  );
  const items = rows.slice(0, limit);
  return { items: items.map(toRecord), next: rows.length > limit || more ? String(items.at(-1)?.seq) : null };
}

function toRecord(row: LetterRow): DeadLetterRecord {
  return {
    id: row.id,
    status: row.status,
    listener: row.listener,
    eventId: row.event_id,
    topic: row.topic,
    payload: JSON.parse(row.payload) as unknown,
    rootEventId: row.root_event_id,
    chainDepth: row.chain_depth,
    jobId: row.job_id,
    attempts: row.attempts,
    error: { type: row.error_type, message: row.error_message },
    firstFailedAt: row.first_failed_at,
    failedAt: row.failed_at,
    redrives: row.redrives,
    endedAt: row.ended_at,
    reason: row.reason,
  };
}
