// Commits: what their writer notes with them, and how their reader sees them.
import { checkCount } from "../core/count.ts";
import { invalid, notFound } from "../core/error.ts";
import { isObject, toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkKey } from "../core/name.ts";
import { checkLimit } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import { checkCommit, readHead } from "./moment.ts";
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
  if (actor !== undefined) checkKey(actor, "actor");
  if (reason !== undefined) checkReason(reason);
  if (metadata !== undefined) checkMetadata(metadata);
  return {
    ...notes,
    ...(actor === undefined ? {} : { actor }),
    ...(reason === undefined ? {} : { reason }),
    ...(metadata === undefined ? {} : { metadata }),
  };
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
  readonly limit?: number;
  /** `next` of the page before: only older commits. */
  readonly before?: number;
};

type CommitRow = Omit<CommitRecord, "metadata" | "cause"> & {
  readonly metadata: string;
  readonly runId: string | null;
  readonly rootRunId: string | null;
};

const selectCommits = sql`select id, committed_at as at, actor, reason, metadata, changes, run_id as "runId",
  root_run_id as "rootRunId" from daybook_record_commit`;

/** The newest first. */
export async function listCommits(reader: RecordReader, filter: CommitFilter): Promise<CommitPage> {
  refuseUnknown(filter, ["limit", "before"], "the list of commits");
  const limit = checkLimit(filter.limit);
  const before = checkCount(filter.before ?? Number.MAX_SAFE_INTEGER, "before", 1, Number.MAX_SAFE_INTEGER);
  const rows = await reader.heavy<CommitRow>(sql`${selectCommits}
    where tenant_id = ${reader.tenant} and id < ${before} order by id desc limit ${limit + 1}`);
  const items = rows.slice(0, limit).map(toCommit);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

export async function readCommit(reader: RecordReader, id: number): Promise<CommitRecord> {
  const { commit } = await readHead(reader);
  if (checkCommit(id, commit, "commit") === 0) throw notFound("there is no commit 0: they count from 1", { commit: 0 });
  const [row] = await reader.point<CommitRow>(sql`${selectCommits} where tenant_id = ${reader.tenant} and id = ${id}`);
  return toCommit(row as CommitRow);
}

function toCommit({ metadata, runId, rootRunId, changes, ...row }: CommitRow): CommitRecord {
  const cause = runId === null ? null : { runId, rootRunId };
  return { ...row, metadata: JSON.parse(metadata) as Record<string, unknown>, changes, cause };
}
