// Reads dead letters: one, a page of them, or groups that failed alike.
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkPage, cutPage, type Page } from "../core/page.ts";
import { refuseUnknownFilter } from "../core/suggest.ts";
import { makeEach } from "../storage/make-each.ts";
import { joinSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import type { DeadLetterStatus } from "./dead-letter.ts";

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

export type DeadLetterPage = Page<DeadLetterRecord>;

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
  /** The type of the error and, if given, its message. */
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

export function checkFilter(filter: LetterFilter, others: readonly string[] = []): void {
  refuseUnknownFilter(filter, ["listener", "topic", "error", ...others], "the filter of dead letters");
  if (filter.error !== undefined && typeof filter.error.type !== "string") {
    throw invalid('error is { type, message? }: give the "type" of the errors that are meant');
  }
}

export async function readLetter(store: Store, tenant: string, id: string): Promise<DeadLetterRecord> {
  const [row] = await store.read<LetterRow>(
    sql`${selectLetters} where letter.tenant_id = ${tenant} and letter.id = ${id}`,
  );
  if (row === undefined) throw noLetter(id);
  return toRecord(row);
}

export function noLetter(id: string): DaybookError {
  return new DaybookError("not_found", `there is no dead letter ${id}`, { details: { id } });
}

export async function readGroups(store: Store, tenant: string): Promise<DeadLetterGroup[]> {
  const rows = await store.readHeavy<WithError<DeadLetterGroup>>(sql`select listener.name as listener,
      letter.error_type as "errorType", letter.error_message as "errorMessage", count(*) as count,
      min(letter.failed_at) as "firstFailedAt", max(letter.failed_at) as "lastFailedAt"
    from daybook_dead_letter letter join daybook_listener listener on listener.seq = letter.listener_seq
    where letter.tenant_id = ${tenant} and letter.ended_at is null
    group by listener.name, letter.error_type, letter.error_message
    order by count(*) desc, max(letter.failed_at) desc limit ${limits.pageMax}`);
  return rows.map(withError);
}

type WithError<Record> = Omit<Record, "error"> & { readonly errorType: string; readonly errorMessage: string };

function withError<Row extends { errorType: string; errorMessage: string }>({
  errorType: type,
  errorMessage: message,
  ...row
}: Row) {
  return { ...row, error: { type, message } };
}

type LetterRow = WithError<DeadLetterRecord> & { readonly payload: string; readonly ".seq": number };

const selectLetters = sql`select letter.id, letter.status, listener.name as listener, event.id as "eventId", event.topic,
    event.payload, event.root_event_id as "rootEventId", event.chain_depth as "chainDepth", letter.job_id as "jobId",
    letter.attempts, letter.error_type as "errorType", letter.error_message as "errorMessage",
    letter.first_failed_at as "firstFailedAt", letter.failed_at as "failedAt", letter.redrives,
    letter.ended_at as "endedAt", letter.reason, letter.seq as ".seq"
  from daybook_dead_letter letter join daybook_listener listener on listener.seq = letter.listener_seq
  join daybook_event event on event.seq = letter.event_seq`;

export async function listLetters(
  store: Store,
  tenant: string,
  filter: LetterFilter & { status?: DeadLetterStatus; limit?: number; after?: string },
): Promise<DeadLetterPage> {
  checkFilter(filter, ["status", "limit", "after"]);
  const { status } = filter;
  const { limit, after } = checkPage(filter);
  const ended = status === undefined ? sql`letter.ended_at is null` : sql`letter.status = ${status}`;
  const { rows, more } =
    await store.readPage<LetterRow>(sql`${selectLetters} where ${whichLetters(tenant, filter)} and ${ended}
    and letter.seq < ${after ?? Number.MAX_SAFE_INTEGER} order by letter.seq desc limit ${limit + 1}`);
  const page = cutPage(rows, limit, (row) => row[".seq"], undefined, more || rows.length > limit);
  return { items: await makeEach(page.items, toRecord), next: page.next };
}

function toRecord({ ".seq": _seq, payload, ...row }: LetterRow): DeadLetterRecord {
  return { ...withError(row), payload: JSON.parse(payload) as unknown };
}
