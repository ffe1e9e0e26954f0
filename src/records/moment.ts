// A moment of the past: a commit, or a time, which means the last commit at or before it.
import { invalid, notFound } from "../core/error.ts";
import { isoTime, timeMs, type TimeInput } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { RecordReader } from "./record-reader.ts";

/** A commit's id, or a time that is not a bare number: a Date, an ISO text, a Temporal.Instant. */
export type AsOf = number | Exclude<TimeInput, number>;

/** Null: now. A number: as of that commit; 0 is before the first. */
export type Moment = number | null;

export async function readHead(reader: RecordReader): Promise<{ commit: number | null; at: number | null }> {
  const [row] = await reader.point<{ commit: number; at: number }>(sql`select commit_id as "commit", committed_at as at
    from daybook_record_head where tenant_id = ${reader.tenant} and commit_id > 0`);
  return row ?? { commit: null, at: null };
}

export async function momentOf(reader: RecordReader, asOf: AsOf | undefined): Promise<Moment> {
  if (asOf === undefined) return null;
  const head = await readHead(reader);
  if (typeof asOf === "number") return checkCommit(asOf, head.commit);
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
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const [stretch] = await reader.point<{ from: number; id: number | null }>(sql`select stretch.clock_from as "from",
        (select id from daybook_record_commit where tenant_id = ${tenant} and clock_from = stretch.clock_from
          and committed_at <= ${at} order by committed_at desc, id desc limit 1) as id
      from (select max(clock_from) as clock_from from daybook_record_commit
        where tenant_id = ${tenant} and clock_from < ${before}) as stretch where stretch.clock_from is not null`);
    if (stretch === undefined) return 0;
    if (stretch.id !== null) return stretch.id;
    before = stretch.from;
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
