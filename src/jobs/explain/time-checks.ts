// Times that no rule explains: they were written, or acted upon, by a clock that was wrong. Doctor finds them and `daybook mend` puts
// them right, by the rule that each of them should have followed. What is only history keeps the time that the clock said.
import { limits } from "../../core/limits.ts";
import type { Behind } from "../../core/clock.ts";
import type { Check } from "../../storage/checks.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { jobsChannel } from "../job.ts";
import { restand } from "../state.ts";

/** What to do about them. */
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

export const jobTimeChecks: readonly Check[] = [
  {
    promise: "D4",
    name: "no job stands in line before its time",
    find: (_dialect, now) => sql`select job.id as finding, line.seq from ${releasedEarly(now)}`,
    advice: mendAdvice,
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
    promise: "D4",
    name: "no job waits longer than its own delay or backoff",
    find: (_dialect, now) => sql`select job.id as finding, line.seq from ${countedFromAhead(now)}`,
    advice: mendAdvice,
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
    promise: "D4",
    name: "no key is held for longer than its window",
    // Its window is counted from the creation of its job, so this comes before that is mended.
    find: (_dialect, now) => sql`select job.id as finding, job.seq from daybook_job_key held
      join daybook_job job on job.seq = held.job_seq
      where held.until_at is not null and job.created_at > ${latestNow(now)}`,
    advice: mendAdvice,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_job_key set until_at = ${tx.now} + until_at
          - (select created_at from daybook_job job where job.seq = daybook_job_key.job_seq)
        where job_seq ${anyOf("integer", seqs)} and until_at is not null and exists (select 1 from daybook_job job
          where job.seq = daybook_job_key.job_seq and job.created_at > ${latestNow(tx.now)})`),
  },
  {
    promise: "D4",
    name: "no open job, and none that holds a key, was made in the future",
    find: (_dialect, now) => sql`select job.id as finding, job.seq from daybook_job job
      where job.created_at > ${latestNow(now)} and (exists (select 1 from daybook_line line where line.seq = job.seq)
        or exists (select 1 from daybook_job_key held where held.job_seq = job.seq))`,
    advice: mendAdvice,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_job set created_at = ${tx.now}
        where seq ${anyOf("integer", seqs)} and created_at > ${latestNow(tx.now)}`),
  },
  {
    promise: "D4",
    name: "no rate counts in a window that is still to come",
    find: (_dialect, now) => sql`select tenant_id || ' ' || rate_key as finding, 0 as seq from daybook_rate_window
      where window_at > ${latestNow(now)}`,
    advice: mendAdvice,
    async mend(tx) {
      tx.wake(jobsChannel);
      return tx.run(sql`update daybook_rate_window set window_at = ${tx.now},
          opens_at = opens_at - opens_at + ${tx.now}
        where window_at > ${latestNow(tx.now)}`);
    },
  },
  {
    promise: "D4",
    name: "no reservation lasts longer than was asked",
    find: (_dialect, now) => sql`select id as finding, seq from daybook_reservation
      where status = 'active' and expires_at > ${latestNow(now)} + lasts_ms`,
    advice: mendAdvice,
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
