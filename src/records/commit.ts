// Commits: what their writer notes with them, how their reader sees them, and which one a moment of the past means.
import { checkCount } from "../core/count.ts";
import { invalid, notFound } from "../core/error.ts";
import { isObject, toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkKey } from "../core/name.ts";
import { checkLimit } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { isoTime, timeMs, type TimeInput } from "../core/time.ts";
import { rawSql, sql } from "../storage/sql.ts";
import { indexedBy, seekEach } from "../storage/word.ts";
import { checkDefinition, type AnyRecordType } from "./define/definition.ts";
import type { RecordReader } from "./record-reader.ts";

export type CommitNotes = {
  /** Who: a user, a program. */
  readonly actor?: string;
  /** Why, for people. */
  readonly reason?: string;
  /** Any JSON object. */
  readonly metadata?: Record<string, unknown>;
};

export const noteNames = ["actor", "reason", "metadata"] as const;

/** Later notes of the same unit replace earlier ones, field by field. */
export function addNotes(notes: CommitNotes, { actor, reason, metadata }: CommitNotes): CommitNotes {
  if (actor === undefined && reason === undefined && metadata === undefined) return notes;
  if (actor !== undefined) checkKey(actor, "actor");
  if (reason !== undefined) checkReason(reason);
  if (metadata !== undefined) checkMetadata(metadata);
  const given = Object.entries({ actor, reason, metadata }).filter(([, value]) => value !== undefined);
  return { ...notes, ...Object.fromEntries(given) };
}

function checkReason(reason: unknown): void {
  if (typeof reason !== "string") throw invalid("the reason of a commit is a text");
  const bytes = Buffer.byteLength(reason);
  if (bytes > limits.commitReasonBytesMax) {
    throw invalid(`the reason of a commit is ${bytes} bytes long: at most ${limits.commitReasonBytesMax}`);
  }
  if (!reason.isWellFormed() || reason.includes("\0")) throw invalid("the reason has a lone surrogate or U+0000");
}

function checkMetadata(metadata: unknown): void {
  if (!isObject(metadata)) throw invalid("the metadata of a commit is an object, such as { ticket: 17 }");
  toJson(metadata, { what: "metadata" });
}

export type CommitRecord = {
  readonly id: number;
  readonly at: number;
  readonly actor: string | null;
  readonly reason: string | null;
  readonly metadata: Record<string, unknown>;
  readonly changes: number;
  /** The run that made it, and the one that began its chain. */
  readonly cause: { readonly runId: string; readonly rootRunId: string | null } | null;
};

export type CommitPage = { readonly items: readonly CommitRecord[]; readonly next: number | null };
export type CommitFilter = {
  /** Only those of this actor. */
  readonly actor?: string;
  /** Only those made from then on. */
  readonly since?: TimeInput;
  /** Only those made before then. */
  readonly until?: TimeInput;
  /** Only those that changed records of this type. */
  readonly type?: AnyRecordType;
  readonly limit?: number;
  /** `next` of the page before: only older commits. */
  readonly before?: number;
};

type CommitRow = Omit<CommitRecord, "metadata" | "cause"> & {
  readonly metadata: string;
  readonly runId: string | null;
  readonly rootRunId: string | null;
};

const commitColumns = rawSql(`record_commit.id, committed_at as at, actor, reason, metadata, changes, run_id as "runId",
  root_run_id as "rootRunId"`);
const selectCommits = sql`select ${commitColumns} from daybook_record_commit record_commit`;
const selectCommitsOfActor = sql`${selectCommits} ${indexedBy("commits_by_actor")}`;
const selectCommitsOfType = sql`select ${commitColumns} from daybook_record_commit_type touched
  ${seekEach("record_commit", sql`record_commit.tenant_id = touched.tenant_id and record_commit.id = touched.commit_id`)}`;

const filterNames = ["actor", "since", "until", "type", "limit", "before"];

/** The newest first. */
export async function listCommits(reader: RecordReader, filter: CommitFilter): Promise<CommitPage> {
  refuseUnknown(filter, filterNames, "the list of commits");
  const { actor, type: wanted } = filter;
  const limit = checkLimit(filter.limit);
  const before = checkCount(filter.before ?? Number.MAX_SAFE_INTEGER, "before", 1, Number.MAX_SAFE_INTEGER);
  if (actor !== undefined) checkKey(actor, "actor");
  const since = filter.since === undefined ? null : timeMs(filter.since, "since");
  const until = filter.until === undefined ? null : timeMs(filter.until, "until");
  const type = wanted === undefined ? null : await reader.typeOf(checkDefinition(wanted, "type").name);
  if (type === undefined) return { items: [], next: null };
  // Bounds of their numbers, so that what is outside is not read; where the clock was set back, others lie between them.
  const first = since === null ? 1 : await firstCommitFrom(reader, since);
  const end = Math.min(before, reader.unfinished() ?? before);
  const last = Math.min(end - 1, until === null ? Number.MAX_SAFE_INTEGER : await lastCommitBy(reader, until - 1));
  const id = type === null ? rawSql("record_commit.id") : rawSql("touched.commit_id");
  const owner =
    type === null
      ? sql`record_commit.tenant_id = ${reader.tenant}`
      : sql`touched.tenant_id = ${reader.tenant} and touched.type_seq = ${type.seq}`;
  const select = type !== null ? selectCommitsOfType : actor !== undefined ? selectCommitsOfActor : selectCommits;
  const rows = await reader.heavy<CommitRow>(sql`${select}
    where ${owner} and ${id} >= ${first} and ${id} <= ${last} ${actor === undefined ? sql`` : sql`and actor = ${actor}`}
      ${since === null ? sql`` : sql`and committed_at >= ${since}`} ${until === null ? sql`` : sql`and committed_at < ${until}`}
    order by ${id} desc limit ${limit + 1}`);
  const items = rows.slice(0, limit).map(toCommit);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

/** Those after `from` up to `to`, in their order. */
export async function readCommits(reader: RecordReader, from: number, to: number): Promise<CommitRecord[]> {
  const rows = await reader.heavy<CommitRow>(sql`${selectCommits} where record_commit.tenant_id = ${reader.tenant}
    and record_commit.id > ${from} and record_commit.id <= ${to} order by record_commit.id`);
  return rows.map(toCommit);
}

export async function readCommit(reader: RecordReader, id: number): Promise<CommitRecord> {
  const { commit } = await readHead(reader);
  if (checkCommit(id, commit, "commit") === 0) throw notFound("there is no commit 0: they count from 1", { commit: 0 });
  const [row] = await reader.point<CommitRow>(
    sql`${selectCommits} where record_commit.tenant_id = ${reader.tenant} and record_commit.id = ${id}`,
  );
  return toCommit(row as CommitRow);
}

function toCommit({ metadata, runId, rootRunId, changes, ...row }: CommitRow): CommitRecord {
  const cause = runId === null ? null : { runId, rootRunId };
  return { ...row, metadata: JSON.parse(metadata) as Record<string, unknown>, changes, cause };
}

/** A commit's number, or a time: a Date, an ISO text, a Temporal.Instant, or milliseconds such as `commit.at`, which are told from a
 *  commit by their size. A time means the last commit at or before it. */
export type AsOf = TimeInput;

/** Null: now. A number: as of that commit; 0 is before the first. */
export type Moment = number | null;

type Head = { readonly commit: number | null; readonly at: number | null };

export async function readHead({
  tenant,
  point,
  unfinished,
}: Pick<RecordReader, "tenant" | "point"> & Partial<Pick<RecordReader, "unfinished">>): Promise<Head> {
  const own = unfinished?.();
  const [row] = await point<{ commit: number; at: number }>(
    own === undefined
      ? sql`select commit_id as "commit", committed_at as at
          from daybook_record_head where tenant_id = ${tenant} and commit_id > 0`
      : sql`select id as "commit", committed_at as at from daybook_record_commit where tenant_id = ${tenant} and id = ${own - 1}`,
  );
  return row ?? { commit: null, at: null };
}

export async function momentOf(reader: RecordReader, asOf: AsOf | undefined): Promise<Moment> {
  if (asOf === undefined) return null;
  const head = await readHead(reader);
  if (typeof asOf === "number" && asOf < limits.commitsMax) return checkCommit(asOf, head.commit);
  const at = timeMs(asOf, "asOf");
  if (at > Math.max(reader.now(), head.at ?? 0)) {
    throw invalid(
      `asOf ${isoTime(at)} is in the future: give a time that has passed, or leave it out to read what is now`,
    );
  }
  return lastCommitBy(reader, at);
}

/** The last commit at or before this time. Commits are ordered by id. Where the clock was set back, times begin again, so this
 *  looks at the stretches between those moments, the newest first, each by one seek. */
async function lastCommitBy(reader: RecordReader, at: number): Promise<number> {
  const { tenant } = reader;
  const end = reader.unfinished() ?? Number.MAX_SAFE_INTEGER;
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const [stretch] = await reader.point<{ from: number; id: number | null }>(sql`select stretch.clock_from as "from",
        (select id from daybook_record_commit where tenant_id = ${tenant} and clock_from = stretch.clock_from
          and committed_at <= ${at} and id < ${end} order by committed_at desc, id desc limit 1) as id
      from (select max(clock_from) as clock_from from daybook_record_commit
        where tenant_id = ${tenant} and clock_from < ${before}) as stretch where stretch.clock_from is not null`);
    if (stretch === undefined) return 0;
    if (stretch.id !== null) return stretch.id;
    before = stretch.from;
  }
}

/** The first commit at or after this time, found in the same way from the oldest stretch on; beyond all of them when there is none. */
async function firstCommitFrom({ tenant, point }: RecordReader, at: number): Promise<number> {
  for (let after = 0; ;) {
    const [stretch] = await point<{ from: number; id: number | null }>(sql`select stretch.clock_from as "from",
        (select id from daybook_record_commit where tenant_id = ${tenant} and clock_from = stretch.clock_from
          and committed_at >= ${at} order by committed_at, id limit 1) as id
      from (select min(clock_from) as clock_from from daybook_record_commit
        where tenant_id = ${tenant} and clock_from > ${after}) as stretch where stretch.clock_from is not null`);
    if (stretch === undefined) return Number.MAX_SAFE_INTEGER;
    if (stretch.id !== null) return stretch.id;
    after = stretch.from;
  }
}

/** Checks that the commit exists; 0 is the time before the first. */
export function checkCommit(commit: number, head: number | null, what = "asOf"): number {
  if (!Number.isSafeInteger(commit) || commit < 0) {
    throw invalid(`${what} ${String(commit)} is no commit: give its number, or a time as ISO text or a Date`);
  }
  if (commit > (head ?? 0)) {
    throw notFound(`commit ${commit} does not exist: the last one is ${head ?? "none yet"}`, { commit, head });
  }
  return commit;
}
