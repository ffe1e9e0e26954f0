// A moment of the past: a commit, or a time, which means the last commit at or before it.
import { DaybookError, invalid } from "../core/error.ts";
import { isoTime, timeMs, type TimeInput } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { RecordReader } from "./record-reader.ts";

/** A commit's id, or a time that is not a bare number: a Date, an ISO text, a Temporal.Instant. */
export type AsOf = number | Exclude<TimeInput, number>;

/** Null: now. A number: as of that commit, 0 being before the first. */
export type Moment = number | null;

export async function readHead(reader: RecordReader): Promise<{ commit: number | null; at: number | null }> {
  const [row] = await reader.point<{ commit_id: number; committed_at: number }>(
    sql`select commit_id, committed_at from daybook_record_head where tenant_id = ${reader.tenant} and commit_id > 0`,
  );
  return { commit: row?.commit_id ?? null, at: row?.committed_at ?? null };
}

export async function momentOf(reader: RecordReader, asOf: AsOf | undefined): Promise<Moment> {
  if (asOf === undefined) return null;
  const head = await readHead(reader);
  if (typeof asOf === "number") return checkCommit(asOf, head.commit);
  const at = timeMs(asOf, "asOf");
  if (at > Math.max(reader.now(), head.at ?? 0)) {
    throw invalid(`asOf ${isoTime(at)} is in the future: what will be known then is not known yet`);
  }
  const [row] = await reader.point<{ id: number }>(sql`select id from daybook_record_commit
    where tenant_id = ${reader.tenant} and committed_at <= ${at} order by committed_at desc, id desc limit 1`);
  return row?.id ?? 0;
}

/** Checks that the commit exists; 0 stands for the time before the first. */
export function checkCommit(commit: number, head: number | null, what = "asOf"): number {
  if (!Number.isSafeInteger(commit) || commit < 0) {
    throw invalid(`${what} ${String(commit)} is no commit: give its number, or a time as ISO text or a Date`);
  }
  if (commit > (head ?? 0)) {
    throw new DaybookError("not_found", `commit ${commit} does not exist: the last one is ${head ?? "none yet"}`, {
      details: { commit, head },
    });
  }
  return commit;
}
