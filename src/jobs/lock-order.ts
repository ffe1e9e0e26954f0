// The one order in which transactions lock rows on PostgreSQL. Two that want the same rows then wait for each other in
// turn, and never both at once. SQLite has one writer and needs none of this.
//
//   1. reservations   by their number: those of direct work, before whatever is decided about it
//   2. groups         by their number: before any of their jobs, because the end of one job decides about the others
//   3. jobs           by their number
//   4. limits         by name, all in one statement
//
// Settle, unclaim, cancel, retry and recovery begin this way, and so do cancelling a group and adding to one. What they lock
// later (the rest of a group that they hold, those that wait for a slot) is locked by nobody who waits for what they
// hold, or is passed by. A claim comes last in its turn and waits for nobody: what is locked, it leaves for the next look.
// So does a prune. Whoever closes a lane (gate.ts) does that before all of this.
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { lockLimits, lockNames, type Limited } from "./limit.ts";

/** Locks jobs and what they belong to. Of a `plain` one it is known that it is of no group and no direct work. */
export async function lockJobs(
  tx: Tx,
  jobs: readonly {
    readonly seq: number;
    readonly plain?: boolean | undefined;
    readonly limited?: boolean | undefined;
  }[],
): Promise<void> {
  if (tx.dialect === "sqlite" || jobs.length === 0) return;
  if (jobs.every((job) => job.plain === true && job.limited === false)) {
    await tx.all(sql`select seq from daybook_line where seq ${anyOf("integer", seqsOf(jobs))} order by seq for update`);
    return;
  }
  await lockHolders(tx, seqsOf(jobs.filter((job) => job.plain !== true)));
  const rows = await tx.all<Limited>(sql`select job.tenant_id, job.name, job.limits, job.limit_key
    from daybook_line line join daybook_job job on job.seq = line.seq
    where line.seq ${anyOf("integer", seqsOf(jobs))} order by line.seq for update of line`);
  await lockLimits(tx, lockNames(rows.filter((row) => row.limits !== null)));
}

/** Rows of the line that a statement is about to change in an order of its own. */
export async function lockLines(tx: Tx, which: Sql): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await tx.all(sql`select seq from daybook_line where seq = any(array(${which})) order by seq for update`);
}

/** The row of the line of one job, for a verb that knows the job by its id: whoever is just claiming it is waited for. */
export async function lockLine(tx: Tx, { tenant, id }: { tenant: string; id: string }): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await tx.all(sql`select seq from daybook_line
    where seq = (select seq from daybook_job where tenant_id = ${tenant} and id = ${id}) for update`);
}

/** The group of one job, for a verb that knows the job by its id. */
export async function lockGroupOf(tx: Tx, { tenant, id }: { tenant: string; id: string }): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await tx.all(sql`select seq from daybook_job_group job_group
    where seq = (select group_seq from daybook_job where tenant_id = ${tenant} and id = ${id}) for update`);
}

// What a job belongs to never changes, so it may be read before anything is locked.
async function lockHolders(tx: Tx, jobs: readonly number[]): Promise<void> {
  if (jobs.length === 0) return;
  const rows = await tx.all<{ group_seq: number | null; reservation_seq: number | null }>(
    sql`select group_seq, case kind when 'direct' then kind_seq end as reservation_seq from daybook_line
      where seq ${anyOf("integer", jobs)} and (group_seq is not null or kind is not null)`,
  );
  const reservations = rows.flatMap((row) => row.reservation_seq ?? []);
  const groups = rows.flatMap((row) => row.group_seq ?? []);
  if (reservations.length > 0) {
    await tx.all(
      sql`select seq from daybook_reservation reservation where seq ${anyOf("integer", reservations)} order by seq for update`,
    );
  }
  if (groups.length > 0) {
    await tx.all(
      sql`select seq from daybook_job_group job_group where seq ${anyOf("integer", groups)} order by seq for update`,
    );
  }
}

function seqsOf(jobs: readonly { readonly seq: number }[]): number[] {
  return jobs.map((job) => job.seq);
}
