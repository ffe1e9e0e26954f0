// What must hold of jobs and their runs; doctor asks. The numbers are those of docs/promises.md.
import { limits } from "../core/limits.ts";
import type { Check } from "../storage/checks.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Behind } from "../core/clock.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { jobsChannel } from "./job.ts";
import { restand } from "./state.ts";

const report = "report it: the tables' own rules and the engine should have made this impossible";

const oneTransaction = "report it: the end of a job and of its group are one transaction";
const underOneLock = "report it: a claim reads the reservation of a queue under the lock under which it is made";

// The time of a transaction is read before its locks, so one that began a little earlier may have committed later. Hosts
// need not agree on the time at all: only what one of them wrote is compared.
const wroteLaterMs = 2 * limits.busyMsMax;

const checks: readonly (Omit<Check, "advice"> & Partial<Check>)[] = [
  {
    promise: "J1",
    name: "an open job has one row in the line, and a running one is of a known session and has no ended run",
    find: () => sql`select coalesce(job.id, 'line ' || line.seq) as finding from daybook_line line
      left join daybook_job job on job.seq = line.seq left join daybook_run run on run.job_seq = line.seq
      left join daybook_session session on session.seq = line.session_seq
      where job.seq is null or run.seq is not null or job.cancelled_at is not null or job.lane_seq <> line.lane_seq
        or (line.status = 'running' and session.seq is null)`,
  },
  {
    promise: "J2",
    name: "no run without its job",
    find: () => sql`select run.id as finding from daybook_run run left join daybook_job job on job.seq = run.job_seq
      where run.job_seq is not null and (job.seq is null or job.tenant_id <> run.tenant_id)`,
    advice: "rows of daybook_job were removed by hand: remove their runs as well, or restore a backup",
  },
  {
    promise: "J3",
    name: "a job that is not in the line has a run, or was cancelled before it ran",
    find: () => sql`select job.id as finding from daybook_job job left join daybook_line line on line.seq = job.seq
      left join daybook_run run on run.job_seq = job.seq
      where line.seq is null and (run.seq is null) = (job.cancelled_at is null)`,
  },
  {
    promise: "J5",
    name: "a retry has its parent's params and counts on from it",
    find: () => sql`select child.id as finding from daybook_job child join daybook_job parent on parent.seq = child.retry_of
      left join daybook_line line on line.seq = parent.seq
      where child.params <> parent.params or child.name <> parent.name or child.attempt < parent.attempt
        or child.seq <= parent.seq or line.seq is not null
        or (child.origin <> 'manual' and child.losses < parent.losses)`,
  },
  {
    promise: "J7",
    name: "no two queued jobs of a lane and priority have one place",
    find: () => sql`select min(job.id) as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'queued' group by line.lane_seq, line.priority, line.position having count(*) > 1`,
    advice: "renumber the lane",
  },
  {
    promise: "J9",
    name: "no job runs in a session that has ended",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      join daybook_session session on session.seq = line.session_seq
      where line.status = 'running' and session.status <> 'running'`,
    advice: "a worker's next sweep ends it; if it stays, no worker is running",
  },
  {
    promise: "J9",
    name: "a job that a remote worker runs has an open lease, which some day runs out",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      join daybook_session session on session.seq = line.session_seq
      where line.status = 'running' and session.kind = 'remote' and not exists (select 1 from daybook_lease lease
        where lease.tenant_id = job.tenant_id and lease.run_id = line.run_id and lease.closed_at is null)`,
  },
  {
    promise: "J13",
    name: "a permit is held by a job that runs",
    find: () => sql`select permit.limit_key as finding from daybook_permit permit
      left join daybook_line line on line.seq = permit.job_seq and line.status = 'running' where line.seq is null`,
  },
  {
    promise: "J15",
    name: "a job that waits for somebody says for whom",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'waiting' and line.waits_for in ('key', 'host', 'alone', 'release') and line.waits_key is null`,
  },
  {
    promise: "J15",
    name: "a rate that jobs wait for has a time at which it opens",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_rate_window rate_window on rate_window.tenant_id = job.tenant_id
        and rate_window.rate_key = substr(line.waits_key, length(job.tenant_id) + 2)
      where line.status = 'waiting' and line.waits_for = 'time' and line.waits_key is not null
        and rate_window.opens_at is null`,
  },
  {
    promise: "J2",
    name: "a job that was made from a template names one of its tenant",
    find: () => sql`select job.id as finding from daybook_job job left join daybook_job_template template
        on template.tenant_id = job.tenant_id and template.id = job.template_id
      where job.template_id is not null and template.seq is null`,
    advice:
      "rows of daybook_job_template were removed by hand: restore a backup, or set the template_id of these jobs to null",
  },
  {
    promise: "J9",
    name: "a group is open exactly while one of its jobs is",
    find: () => sql`select g.id as finding from daybook_job_group g where (g.status = 'open') <> exists (
      select 1 from daybook_line line where line.group_seq = g.seq)`,
    advice: oneTransaction,
  },
  {
    promise: "J15",
    name: "a job that waits for its group stands behind an open one",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_job_group g on g.seq = line.group_seq
      where line.status = 'waiting' and line.waits_for = 'group' and (g.seq is null or g.mode <> 'sequential'
        or not exists (select 1 from daybook_line current where current.group_seq = g.seq
          and coalesce(current.waits_for, '') <> 'group'))`,
    advice: oneTransaction,
  },
  {
    promise: "J9",
    name: "of a group that runs one after another, one job has its turn",
    find: () => sql`select g.id as finding from daybook_job_group g join daybook_line line on line.group_seq = g.seq
      where g.mode = 'sequential' and coalesce(line.waits_for, '') <> 'group' group by g.id having count(*) > 1`,
    advice: oneTransaction,
  },
  {
    promise: "J3",
    name: "a group that has ended says how its jobs ended",
    find: () => sql`select g.id as finding from daybook_job_group g where g.status <> 'open' and (g.status = 'completed') = exists (
      select 1 from daybook_job job left join daybook_run run on run.job_seq = job.seq
      where job.group_seq = g.seq and coalesce(run.status, '') <> 'success' and not exists (
        select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = g.seq))`,
    advice: oneTransaction,
  },
  // That a queue has one reservation at most is the index's.
  {
    promise: "J10",
    name: "nothing of a queue was started while the queue was reserved",
    find: () => sql`select job.id as finding from daybook_reservation reservation
      join daybook_session holder on holder.seq = reservation.session_seq
      join daybook_line line on line.lane_seq = reservation.lane_seq join daybook_job job on job.seq = line.seq
      join daybook_session runner on runner.seq = line.session_seq
      where reservation.status = 'active' and line.status = 'running' and job.origin <> 'direct'
        and runner.host = holder.host
        and line.started_at > reservation.reserved_at + ${wroteLaterMs} and line.started_at < reservation.expires_at`,
    advice: underOneLock,
  },
  {
    promise: "J10",
    name: "nothing else of a queue runs beside direct work that holds it",
    find: () => sql`select job.id as finding from daybook_reservation reservation
      join daybook_line direct on direct.lane_seq = reservation.lane_seq and direct.session_seq = reservation.session_seq
      join daybook_line line on line.lane_seq = reservation.lane_seq and line.seq <> direct.seq
      join daybook_job job on job.seq = line.seq
      where reservation.status = 'active' and direct.status = 'running' and direct.kind = 'direct'
        and direct.started_at >= reservation.reserved_at
        and line.status = 'running' and line.started_at < reservation.expires_at`,
    advice: underOneLock,
  },
  {
    promise: "J15",
    name: "a job that waits for its reservation has one that is held",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_reservation reservation
        on reservation.tenant_id = job.tenant_id and reservation.id = line.waits_key and reservation.status = 'active'
          and reservation.lane_seq = line.lane_seq
      where line.status = 'waiting' and line.waits_for = 'reservation' and (reservation.seq is null
        or job.origin <> 'direct')`,
    advice: underOneLock,
  },
];

// Times that no rule explains: they were written, or acted upon, by a clock that was wrong. Doctor finds them and `daybook mend` puts
// them right, by the rule that each of them should have followed. What is only history keeps the time that the clock said.

export const mendAdvice =
  'the clock was wrong when this was written: see that it is right now, look with "daybook mend", and mend with --apply';

/** The furthest that a time of now may be ahead. */
export function latestNow(now: number): number {
  return now + limits.clockAheadMs;
}

// A job that waits for something else as well has another time in the line, which is that one's own.
const dueInLine = sql`daybook_line line join daybook_job job on job.seq = line.seq and job.due_at = line.available_at`;

function releasedEarly(now: number): Sql {
  return sql`${dueInLine} where line.status = 'queued' and line.available_at > ${latestNow(now)}`;
}

function countedFromAhead(now: number): Sql {
  return sql`${dueInLine} where line.status = 'waiting' and line.waits_for = 'time' and line.waits_key is null
    and job.delay_ms is not null and line.available_at > ${latestNow(now)} + job.delay_ms`;
}

const timeChecks: readonly Omit<Check, "promise" | "advice">[] = [
  {
    name: "no job stands in line before its time",
    find: (_dialect, now) => sql`select job.id as finding, line.seq from ${releasedEarly(now)}`,
    async mend(tx, seqs) {
      const early = await tx.all<{ seq: number; at: number }>(
        sql`select line.seq, line.available_at as at from ${releasedEarly(tx.now)} and line.seq ${anyOf("integer", seqs)}`,
      );
      for (const { seq, at } of early) await restand(tx, seq, { waitsFor: "time", availableAt: at });
      tx.wake(jobsChannel);
      return early.length;
    },
  },
  {
    name: "no job waits longer than its own delay or backoff",
    find: (_dialect, now) => sql`select job.id as finding, line.seq from ${countedFromAhead(now)}`,
    async mend(tx, seqs) {
      const late = await tx.all<{ seq: number; delay: number }>(
        sql`select line.seq, job.delay_ms as delay from ${countedFromAhead(tx.now)} and line.seq ${anyOf("integer", seqs)}`,
      );
      for (const { seq, delay } of late) {
        await restand(tx, seq, { waitsFor: "time", availableAt: tx.now + delay });
        await tx.run(sql`update daybook_job set due_at = ${tx.now + delay} where seq = ${seq}`);
      }
      tx.wake(jobsChannel);
      return late.length;
    },
  },
  {
    name: "no key is held for longer than its window",
    // Its window is counted from the creation of its job, so this comes before that is mended.
    find: (_dialect, now) => sql`select job.id as finding, job.seq from daybook_job_key held
      join daybook_job job on job.seq = held.job_seq
      where held.until_at is not null and job.created_at > ${latestNow(now)}`,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_job_key set until_at = ${tx.now} + until_at
          - (select created_at from daybook_job job where job.seq = daybook_job_key.job_seq)
        where job_seq ${anyOf("integer", seqs)} and until_at is not null and exists (select 1 from daybook_job job
          where job.seq = daybook_job_key.job_seq and job.created_at > ${latestNow(tx.now)})`),
  },
  {
    name: "no open job, and none that holds a key, was made in the future",
    find: (_dialect, now) => sql`select job.id as finding, job.seq from daybook_job job
      where job.created_at > ${latestNow(now)} and (exists (select 1 from daybook_line line where line.seq = job.seq)
        or exists (select 1 from daybook_job_key held where held.job_seq = job.seq))`,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_job set created_at = ${tx.now}
        where seq ${anyOf("integer", seqs)} and created_at > ${latestNow(tx.now)}`),
  },
  {
    name: "no rate counts in a window that is still to come",
    find: (_dialect, now) => sql`select tenant_id || ' ' || rate_key as finding, 0 as seq from daybook_rate_window
      where window_at > ${latestNow(now)}`,
    async mend(tx) {
      tx.wake(jobsChannel);
      return tx.run(sql`update daybook_rate_window set window_at = ${tx.now},
          opens_at = opens_at - opens_at + ${tx.now}
        where window_at > ${latestNow(tx.now)}`);
    },
  },
  {
    name: "no reservation lasts longer than was asked",
    find: (_dialect, now) => sql`select id as finding, seq from daybook_reservation
      where status = 'active' and expires_at > ${latestNow(now)} + lasts_ms`,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_reservation set expires_at = ${tx.now} + lasts_ms where seq ${anyOf("integer", seqs)}
        and status = 'active' and expires_at > ${latestNow(tx.now)} + lasts_ms`),
  },
];

/** What a clock that was behind has counted, of jobs and reservations that were made after these, is counted from the right time: else
 *  a job that was to wait an hour would be due at once. Returns what it counted, which a second look must leave alone: its new time
 *  may be one that the wrong clock said as well. All is looked up before it is written, because on PostgreSQL each statement sees
 *  more than the one before. */
export async function countFromRight(
  tx: Tx,
  { fromMs, toMs, byMs }: Behind,
  made: Newest,
  counted: Counted = { jobs: [], running: [], reservations: [] },
): Promise<Counted> {
  const wrong = sql`between ${fromMs} and ${toMs}`;
  const found = await tx.all<{ seq: number }>(
    sql`select seq from daybook_job where created_at ${wrong} and seq > ${made.job}`,
  );
  const jobs = newOnes(found, counted.jobs);
  const started = await tx.all<{ seq: number }>(sql`select seq from daybook_line
    where status = 'running' and started_at ${wrong} and session_seq = ${made.session}`);
  const running = newOnes(started, counted.running);
  const reserved = await tx.all<{ seq: number }>(sql`select seq from daybook_reservation
    where status = 'active' and reserved_at ${wrong} and seq > ${made.reservation}`);
  const reservations = newOnes(reserved, counted.reservations);
  await tx.run(sql`update daybook_line set available_at = available_at + ${byMs}
    where status = 'waiting' and waits_for = 'time' and waits_key is null and seq in (select seq from daybook_job
      where seq ${anyOf("integer", jobs)} and delay_ms is not null and due_at = daybook_line.available_at)`);
  await tx.run(
    sql`update daybook_job_key set until_at = until_at + ${byMs} where until_at is not null and job_seq ${anyOf("integer", jobs)}`,
  );
  await tx.run(sql`update daybook_job set created_at = created_at + ${byMs},
      due_at = case when delay_ms is null then due_at else due_at + ${byMs} end
    where seq ${anyOf("integer", jobs)} and cancelled_at is null and (exists (select 1 from daybook_line line where line.seq = daybook_job.seq)
      or exists (select 1 from daybook_job_key held where held.job_seq = daybook_job.seq))`);
  await tx.run(sql`update daybook_line set started_at = started_at + ${byMs}, timeout_at = timeout_at + ${byMs}
    where status = 'running' and seq ${anyOf("integer", running)}`);
  await tx.run(sql`update daybook_reservation set reserved_at = reserved_at + ${byMs}, expires_at = expires_at + ${byMs}
    where status = 'active' and seq ${anyOf("integer", reservations)}`);
  tx.wake(jobsChannel);
  return { jobs, running, reservations };
}

/** What was counted from the right time, by its number. */
export type Counted = Readonly<Record<"jobs" | "running" | "reservations", readonly number[]>>;

function newOnes(found: readonly { seq: number }[], counted: readonly number[]): number[] {
  const old = new Set(counted);
  return found.map(({ seq }) => seq).filter((seq) => !old.has(seq));
}

/** The newest of each before a clock was behind, and the session that saw it. */
export type Newest = { readonly job: number; readonly reservation: number; readonly session: number };

export async function newestOf(store: Store, session: number): Promise<Newest> {
  const [row] = await store.read<Omit<Newest, "session">>(sql`select
    (select coalesce(max(seq), 0) from daybook_job) as job,
    (select coalesce(max(seq), 0) from daybook_reservation) as reservation`);
  return { job: row?.job ?? 0, reservation: row?.reservation ?? 0, session };
}

export const jobChecks: readonly Check[] = [
  ...checks.map((check) => ({ advice: report, ...check })),
  ...timeChecks.map((check) => ({ ...check, promise: "D4", advice: mendAdvice })),
];
