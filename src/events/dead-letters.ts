// What people do about dead letters: look at them, redrive them, or give them up with a reason.
import { checkCount } from "../core/count.ts";
import { conflict, invalid, notFound, type DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkPage, cutPage, type Page } from "../core/page.ts";
import { quote, storableText } from "../core/quote.ts";
import { refuseUnknown, refuseUnknownFilter } from "../core/suggest.ts";
import { makeEach } from "../storage/make-each.ts";
import { sql, joinSql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { lockNames, forUpdate, anyOf } from "../storage/word.ts";
import { jobNow, type JobRow } from "../jobs/job.ts";
import { rescheduleJob } from "../jobs/line/edit.ts";
import { letterOf, endLetter, type DeadLetterRow, type DeadLetterStatus, type DeadLetterError } from "./dead-letter.ts";
import { letNextGo } from "./delivery.ts";
import { makeRetry } from "../jobs/settle/settle.ts";
import { deliveryName, type ListenerRow } from "./listener.ts";

export type LettersOptions = {
  /** Only says how many there are. */
  readonly dryRun?: boolean;
  /** Ends it after the slice that it is at. */
  readonly signal?: AbortSignal;
  /** Told after each slice. */
  readonly progress?: (done: number, total: number) => void;
};

export type RedriveOptions = LettersOptions & {
  /** How many redrives start per second; default all at once. */
  readonly rate?: number;
};

export type DeadLetters = {
  get(id: string): Promise<DeadLetterRecord>;
  /** The newest first. Letters that have ended are listed only if `status` asks for them. */
  list(filter?: LettersAsked): Promise<DeadLetterPage>;
  /** By listener and error, the most frequent first. */
  groups(): Promise<DeadLetterGroup[]>;
  /** Delivers the same event to the same listener once more. A letter that fails again stays the same letter. */
  redrive(id: string): Promise<{ readonly jobId: string }>;
  redriveAll(filter: LetterFilter, options?: RedriveOptions): Promise<{ readonly count: number }>;
  discard(id: string, reason: string): Promise<void>;
  discardAll(filter: LetterFilter, reason: string, options?: LettersOptions): Promise<{ readonly count: number }>;
};

export function deadLetters(store: Store, tenant: string): DeadLetters {
  const write = <T>(unit: (tx: Tx) => Promise<T>): Promise<T> => store.write(unit, { tenant });
  return {
    get: (id) => readLetter(store, tenant, id),
    list: (filter = {}) => listLetters(store, tenant, filter),
    groups: () => readGroups(store, tenant),
    redrive: (id) => write((tx) => redriveLetter(tx, id)),
    async redriveAll(filter, options = {}) {
      refuseUnknown(options, [...lettersOptions, "rate"], "redriveAll");
      const perSecond = options.rate === undefined ? null : checkCount(options.rate, "rate", 1);
      // Each redrive waits for its time in the book, so the caller need not stay: the n-th starts n ÷ rate seconds from now.
      return each(store, { tenant, filter, options }, (tx, id, index) =>
        redriveLetter(tx, id, perSecond === null ? 0 : Math.floor((index * 1000) / perSecond)),
      );
    },
    discard: (id, reason) => write((tx) => discardLetter(tx, id, reason)),
    async discardAll(filter, reason, options = {}) {
      refuseUnknown(options, lettersOptions, "discardAll");
      return each(store, { tenant, filter, options }, (tx, id) => discardLetter(tx, id, reason));
    },
  };
}

const sliceMax = 100;

// One transaction per slice. It passes over letters that another process has redriven or discarded meanwhile.
const lettersOptions = ["dryRun", "signal", "progress"] as const;

type Letters = { readonly tenant: string; readonly filter: LetterFilter; readonly options: LettersOptions };

async function each(
  store: Store,
  { tenant, filter, options }: Letters,
  act: (tx: Tx, id: string, index: number) => Promise<unknown>,
): Promise<{ count: number }> {
  checkFilter(filter);
  const found = await store.readHeavy<{ id: string }>(
    sql`select letter.id from daybook_dead_letter letter join daybook_listener listener on listener.seq = letter.listener_seq
      join daybook_event event on event.seq = letter.event_seq
      where ${whichLetters(tenant, filter)} and letter.ended_at is null and letter.status = 'dead'
      order by letter.event_seq, letter.seq`,
  );
  if (options.dryRun === true) return { count: found.length };
  const actOnSlice = async (tx: Tx, from: number): Promise<number> => {
    let done = 0;
    for (const [index, { id }] of found.slice(from, from + sliceMax).entries()) {
      const dead = await tx.get(sql`select seq from daybook_dead_letter
        where tenant_id = ${tenant} and id = ${id} and status = 'dead'`);
      if (dead === undefined) continue;
      await act(tx, id, from + index);
      done++;
    }
    return done;
  };
  let count = 0;
  for (let from = 0; from < found.length && options.signal?.aborted !== true; from += sliceMax) {
    count += await store.write((tx) => actOnSlice(tx, from), { tenant });
    options.progress?.(Math.min(from + sliceMax, found.length), found.length);
  }
  return { count };
}

/** Runs a failed delivery once more, as the next job of its chain, even beyond its attempts. The letter stays until that job
 *  succeeds. */
async function redriveLetter(tx: Tx, id: string, delayMs = 0): Promise<{ jobId: string }> {
  const letter = await lockDead(tx, id, "redriven");
  const first = sql`select seq from daybook_job job where tenant_id = ${letter.tenant_id} and id = ${letter.job_id}`;
  const [last] = await lastOfChains(tx, first);
  if (last === undefined || last.finished_at === null) throw refused({ ...letter, status: "redriving" }, "redriven");
  const attempt = last.attempt + 1;
  const allowed = { ...last, attempts: Math.max(last.attempts, attempt) };
  const again = { attempt, losses: 0, alone: last.alone, backoff: false, origin: "manual" } as const;
  const jobId = await makeRetry(tx, allowed, again);
  if (delayMs > 0) {
    await rescheduleJob(tx, { tenant: tx.tenant, id: jobId }, tx.now + delayMs, { retries: true, delayMs });
  }
  await noteRedrive(tx, letter);
  return { jobId };
}

/** Gives a letter up. The deliveries that wait behind it go on. */
async function discardLetter(tx: Tx, id: string, reason: string): Promise<void> {
  if (typeof reason !== "string" || reason.trim() === "") {
    throw invalid(`the reason is ${quote(reason)}: say why it is given up, for those who look for it later`);
  }
  // The order key is locked before the letter, as it is where a delivery ends.
  const { order_key: key } = await findLetter(tx, id);
  if (key !== null) await lockNames(tx, [`${tx.tenant}\n${key}`]);
  const letter = await lockDead(tx, id, "discarded");
  await endLetter(tx, letter, { status: "discarded", reason: storableText(reason, limits.errorMessageBytesMax) });
  await letNextGo(tx, { tenant_id: letter.tenant_id, limit_key: letter.order_key });
}

async function lockDead(tx: Tx, id: string, verb: string): Promise<DeadLetterRow> {
  const letter = await findLetter(tx, id, sql`${forUpdate}`);
  if (letter.status !== "dead") throw refused(letter, verb);
  return letter;
}

async function findLetter(tx: Tx, id: string, locked = sql``): Promise<DeadLetterRow> {
  const row = await tx.get<DeadLetterRow>(
    sql`select * from daybook_dead_letter where tenant_id = ${tx.tenant} and id = ${id} ${locked}`,
  );
  if (row === undefined) throw noLetter(id);
  return row;
}

function refused({ id, status }: Pick<DeadLetterRow, "id" | "status">, verb: string): DaybookError {
  const advice = status === "redriving" ? "wait for its redrive, or cancel that job" : "it has ended";
  return conflict(`dead letter ${id} is ${status} and cannot be ${verb}: ${advice}`, { id, status });
}

/** The last delivery of each of these events to a listener, by the event's number; nothing for an event without one. */
export async function lastDeliveries(
  tx: Tx,
  { tenant_id: tenant, name }: Pick<ListenerRow, "tenant_id" | "name">,
  events: readonly number[],
): Promise<Map<number, JobRow>> {
  const first = sql`select seq from daybook_job job where tenant_id = ${tenant} and kind = 'delivery' and retry_of is null
    and kind_seq ${anyOf("integer", events)} and name = ${deliveryName(name)}`;
  return new Map((await lastOfChains(tx, first)).map((row) => [row.kind_seq ?? 0, row]));
}

/** Delivers once more what was delivered before: the next job of the same chain, with all attempts of the listener. */
export async function deliverAgain(tx: Tx, listener: ListenerRow, last: JobRow): Promise<void> {
  const attempt = last.attempt + 1;
  const allowed = { ...last, attempts: last.attempt + listener.attempts };
  await makeRetry(tx, allowed, { attempt, losses: 0, alone: 0, backoff: false, origin: "manual" });
  const letter = await letterOf(tx, last);
  if (letter?.status === "dead") await noteRedrive(tx, letter);
}

/** The last job of each chain that begins with one of these. */
async function lastOfChains(tx: Tx, first: Sql): Promise<JobRow[]> {
  return tx.all<JobRow>(sql`with recursive chain (seq) as (${first}
      union all select job.seq from chain cross join daybook_job job where job.retry_of = chain.seq)
    select job.* from chain cross join ${jobNow}
    where job.seq = chain.seq and not exists (select 1 from daybook_job child where child.retry_of = job.seq)`);
}

async function noteRedrive(tx: Tx, { seq }: DeadLetterRow): Promise<void> {
  await tx.run(sql`update daybook_dead_letter set status = 'redriving', redrives = redrives + 1 where seq = ${seq}`);
}

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
  readonly error: DeadLetterError;
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
  readonly error: DeadLetterError;
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

function whichLetters(tenant: string, { listener, topic, error }: LetterFilter): Sql {
  return joinSql([
    sql`letter.tenant_id = ${tenant}`,
    ...(listener === undefined ? [] : [sql`and listener.name = ${listener}`]),
    ...(topic === undefined ? [] : [sql`and event.topic = ${topic}`]),
    ...(error === undefined ? [] : [sql`and letter.error_type = ${error.type}`]),
    ...(error?.message === undefined ? [] : [sql`and letter.error_message = ${error.message}`]),
  ]);
}

function checkFilter(filter: LetterFilter, others: readonly string[] = []): void {
  refuseUnknownFilter(filter, ["listener", "topic", "error", ...others], "the filter of dead letters");
  if (filter.error !== undefined && typeof filter.error.type !== "string") {
    throw invalid('error is { type, message? }: give the "type" of the errors that are meant');
  }
}

async function readLetter(store: Store, tenant: string, id: string): Promise<DeadLetterRecord> {
  const [row] = await store.read<LetterRow>(
    sql`${selectLetters} where letter.tenant_id = ${tenant} and letter.id = ${id}`,
  );
  if (row === undefined) throw noLetter(id);
  return toRecord(row);
}

function noLetter(id: string): DaybookError {
  return notFound(`there is no dead letter ${id}`, { id });
}

async function readGroups(store: Store, tenant: string): Promise<DeadLetterGroup[]> {
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

type LettersAsked = LetterFilter & { status?: DeadLetterStatus; limit?: number; after?: string };

async function listLetters(store: Store, tenant: string, filter: LettersAsked): Promise<DeadLetterPage> {
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
