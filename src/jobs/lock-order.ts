// The one order in which transactions lock rows on PostgreSQL. Two that want the same rows then wait for each other in
// turn, and never both at once. SQLite has one writer and needs none of this.
//
//   1. sessions       the one that claims or reserves, or the one that is ended
//   2. lanes          by their number: closed to claims (lane.ts), then held by what changes places
//   3. reservations   by their number: those of direct work, before whatever is decided about it
//   4. groups         by their number: before any of their jobs, because the end of one job decides about the others
//   5. jobs           by their number, all in one statement: what ends, what its end decides about, what must make room
//   6. limits         by name, all in one statement
//
// Settle, cancel, retry and recovery begin this way, and so do cancelling a group, adding to one, moving a job and
// normalising a queue. Jobs that are locked later are passed by when another transaction holds them: jobs that wait for a permit, and
// jobs that would make room for one that was lost. A claim comes last in its turn and never waits: what is locked, it
// leaves for the next look. So does a prune.
import { anyOf, lockNames } from "../storage/word.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { seqOf, seqsOf, type JobKey } from "./job.ts";
import { limitNames, type Limited } from "./claim/limit.ts";
import type { Ending } from "./settle/settle.ts";

/** A job that is about to end. */
type Ends = Pick<Ending, "seq" | "job" | "shutdown"> & Partial<Pick<Ending, "status">>;

/** Whether nothing has to be read before these are locked: they are known to have no limits and to keep no order, as well. */
export function areLockedAtOnce(jobs: readonly Ends[]): boolean {
  return jobs.every((each) => {
    return isPlain(each) && each.job?.limits === null && each.job.limit_key === null && !keepsPlace(each);
  });
}

/** It is known to be of no group and no direct work. */
function isPlain({ job }: Ends): boolean {
  return job?.group_seq === null && job.kind === null;
}

/** Locks jobs that are about to end, what they belong to and what their end decides about; with `session`, all that ends with it. */
export async function lockJobs(tx: Tx, jobs: readonly Ends[], session?: number): Promise<void> {
  if (tx.dialect === "sqlite" || (jobs.length === 0 && session === undefined)) return;
  const all = anyOf("integer", seqsOf(jobs));
  if (session === undefined && areLockedAtOnce(jobs)) return lockRows(tx, "line", sql`${all}`);
  await holdMoved(tx, seqsOf(jobs.filter(keepsPlace)));
  const { groups, reservations } = await lockHolders(tx, seqsOf(jobs.filter((job) => !isPlain(job))), session);
  const failing = anyOf("integer", seqsOf(jobs.filter(({ status }) => status !== "success")));
  const reached = sql`= any(array(select seq from daybook_line where seq ${all}
    union all ${othersOf(sql`${all}`, sql`${failing}`)}
    union all select seq from daybook_line where kind = 'direct' and kind_seq ${anyOf("integer", reservations)}))`;
  const rows = await tx.all<
    Limited & { readonly seq: number }
  >(sql`select line.seq, job.tenant_id, job.name, job.limits, job.limit_key
    from daybook_line line join daybook_job job on job.seq = line.seq
    where line.seq ${groups.length + reservations.length === 0 ? all : reached} order by line.seq for update of line`);
  const ending = new Set(seqsOf(jobs));
  await lockNames(tx, limitNames(rows.filter(({ seq, limits }) => limits !== null && ending.has(seq))));
}

/** The same for a verb that knows the job by its id and may cancel it. */
export async function lockJob(tx: Tx, job: JobKey): Promise<void> {
  if (tx.dialect === "sqlite") return;
  await lockGroupOf(tx, job);
  const own = sql`= (${seqOf(job)})`;
  await lockLines(tx, sql`${seqOf(job)} union all ${othersOf(own, own)}`);
}

/** A job that succeeds, with one other of its group, which is held: the next of one that runs one after another, else the last,
 *  where no job runs before the last ones do. A serializable transaction that saw the other as it no longer is runs
 *  again. A claim may take the other all the same. Says whether there is another. */
export async function lockWithOther(tx: Tx, seq: number, group: number): Promise<boolean> {
  const rows = await tx.all(sql`select seq from daybook_line where seq = any(array(select ${seq}::bigint
      union all ${nextOf(sql`= ${seq}`)}
      union all (select seq from daybook_line where group_seq = ${group} and seq <> ${seq} order by group_slot desc limit 1)))
    order by seq for key share`);
  return rows.length > 1;
}

/** Those in line that the end of these jobs decides about. What does not succeed may end all that has not begun. */
function othersOf(ending: Sql, failing: Sql): Sql {
  return sql`select other.seq from daybook_line ended
      join daybook_job_group job_group on job_group.seq = ended.group_seq and job_group.on_failure <> 'continue'
      join daybook_line other on other.group_seq = ended.group_seq and other.started_at is null
      where ended.seq ${failing}
    union all ${nextOf(ending)}`;
}

/** Of a group that runs one after another, the next. */
function nextOf(ending: Sql): Sql {
  return sql`select (select other.seq from daybook_line other where other.group_seq = ended.group_seq
      and other.waits_for = 'group' order by other.group_slot limit 1)
    from daybook_line ended
    join daybook_job_group job_group on job_group.seq = ended.group_seq and job_group.mode = 'sequential'
    where ended.seq ${ending}`;
}

/** Rows that a statement is about to change in an order of its own. A claim that is under way is waited for. */
export async function lockLines(tx: Tx, which: Sql): Promise<void> {
  if (tx.dialect !== "sqlite") await lockRows(tx, "line", sql`= any(array(${which}))`);
}

/** Rows of the line, if no other transaction holds one of them. */
export async function tryLines(tx: Tx, seqs: readonly number[]): Promise<boolean> {
  if (tx.dialect === "sqlite" || seqs.length === 0) return true;
  const held = await tx.all(sql`select seq from daybook_line
    where seq ${anyOf("integer", seqs)} order by seq for update skip locked`);
  return held.length === seqs.length;
}

/** The group of one job, for a verb that knows the job by its id. */
export async function lockGroupOf(tx: Tx, { tenant, id }: JobKey): Promise<void> {
  const its = sql`= (select group_seq from daybook_job where tenant_id = ${tenant} and id = ${id})`;
  if (tx.dialect !== "sqlite") await lockRows(tx, "job_group", its);
}

/** Holds the lines of these lanes until the transaction ends, so that one at a time changes places. On PostgreSQL the row is
 *  written, not only locked: a serializable transaction that began before another's move then runs again instead of deciding by
 *  what it saw. Such an update does not hold up an enqueue; a `for update` would. */
export async function holdLines(tx: Tx, lanes: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  for (const lane of [...new Set(lanes)].toSorted((a, b) => a - b)) {
    await tx.run(sql`update daybook_lane as lane set paused_at = paused_at where seq = ${lane}`);
  }
}

// A lost job is tried again where it stood; another may have been moved onto its number, unless that is a multiple of 100.
async function holdMoved(tx: Tx, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return;
  const moved = await tx.all<{ lane_seq: number }>(sql`select lane_seq from daybook_line
    where seq ${anyOf("integer", seqs)} and position % 100 <> 0`);
  const lanes = moved.map((job) => job.lane_seq);
  await holdLines(tx, lanes);
}

function keepsPlace({ status, shutdown }: Ends): boolean {
  return status === "lost" || shutdown === true;
}

type Holders = { readonly groups: readonly number[]; readonly reservations: readonly number[] };

// What a job belongs to never changes, so it may be read before anything is locked.
async function lockHolders(tx: Tx, jobs: readonly number[], session: number | undefined): Promise<Holders> {
  if (jobs.length === 0 && session === undefined) return { groups: [], reservations: [] };
  const rows = await tx.all<{ group_seq: number | null; reservation_seq: number | null }>(
    sql`select group_seq, case kind when 'direct' then kind_seq end as reservation_seq from daybook_line
        where seq ${anyOf("integer", jobs)} and (group_seq is not null or kind is not null)
      union all select null, seq from daybook_reservation where session_seq = ${session ?? null} and status = 'active'`,
  );
  const reservations = rows.flatMap((row) => row.reservation_seq ?? []);
  const groups = rows.flatMap((row) => row.group_seq ?? []);
  if (reservations.length > 0) await lockRows(tx, "reservation", sql`${anyOf("integer", reservations)}`);
  if (groups.length > 0) await lockRows(tx, "job_group", sql`${anyOf("integer", groups)}`);
  return { groups, reservations };
}

async function lockRows(tx: Tx, table: "line" | "reservation" | "job_group", which: Sql): Promise<void> {
  await tx.all(sql`select seq from ${rawSql(`daybook_${table}`)} where seq ${which} order by seq for update`);
}
