// Commits as their reader sees them.
import { checkCount } from "../core/count.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import { checkCommit, readHead } from "./moment.ts";
import type { RecordReader } from "./record-reader.ts";

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

type CommitRow = {
  id: number;
  committed_at: number;
  changes: number;
  actor: string | null;
  reason: string | null;
  metadata: string;
  run_id: string | null;
  root_run_id: string | null;
};

/** The newest first. */
export async function listCommits(reader: RecordReader, filter: CommitFilter): Promise<CommitPage> {
  refuseUnknown(filter, ["limit", "before"], "the list of commits");
  const limit = checkCount(filter.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const before = checkCount(filter.before ?? Number.MAX_SAFE_INTEGER, "before", 1, Number.MAX_SAFE_INTEGER);
  const rows = await reader.heavy<CommitRow>(sql`select * from daybook_record_commit
    where tenant_id = ${reader.tenant} and id < ${before} order by id desc limit ${limit + 1}`);
  const items = rows.slice(0, limit).map(toCommit);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

export async function readCommit(reader: RecordReader, id: number): Promise<CommitRecord> {
  const { commit } = await readHead(reader);
  if (checkCommit(id, commit, "commit") === 0) throw noneAtAll();
  const [row] = await reader.point<CommitRow>(
    sql`select * from daybook_record_commit where tenant_id = ${reader.tenant} and id = ${id}`,
  );
  return toCommit(row as CommitRow);
}

function noneAtAll(): DaybookError {
  return new DaybookError("not_found", "there is no commit 0: they count from 1", { details: { commit: 0 } });
}

function toCommit(row: CommitRow): CommitRecord {
  return {
    id: row.id,
    at: row.committed_at,
    actor: row.actor,
    reason: row.reason,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    changes: row.changes,
    cause: row.run_id === null ? null : { runId: row.run_id, rootRunId: row.root_run_id },
  };
}
