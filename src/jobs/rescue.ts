// Rescue: ends the runs that nobody else will end. Those of a session that has ended are lost; those past their timeout
// are timed out, even if their session lives. Each is done in one transaction and changes nothing the second time.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { eachRow, indexedBy } from "../storage/word.ts";
import { isCancelled } from "./cancel.ts";
import type { Claimer } from "./claim.ts";
import { endOrphans } from "./command/orphan.ts";
import type { Engine } from "./engine.ts";
import { expireReservations, freeReservationsOf } from "./direct/reservation.ts";
import { sessionRecovered, type JobHooks } from "./hooks.ts";
import type { JobRow } from "./job.ts";
import { jobsChannel } from "./job.ts";
import { releaseFreeKeys, type From } from "./let-in.ts";
import type { Ending } from "./outcome.ts";
import { settle } from "./settle.ts";
import { graceMs } from "./run.ts";

type Open = Pick<JobRow, "seq" | "run_id" | "started_at">;
type Late = Open & Pick<JobRow, "timeout_ms">;
type Lost = Open & { readonly heard_at: number; readonly cancelling: number };

/** Ends what a dead session was running. Part of the transaction that declares it dead, or of a sweep after it. */
export async function recoverSession(tx: Tx, hooks: JobHooks, sessionSeq: number): Promise<number> {
  const open = await tx.all<Lost>(
    sql`select line.seq, line.run_id, line.started_at,
        coalesce(session.stopped_at, session.last_heartbeat_at) as heard_at,
        case when ${isCancelled} then 1 else 0 end as cancelling
      from daybook_line line ${indexedBy("jobs_running")} cross join daybook_session session
      where line.status = 'running' and line.session_seq = ${sessionSeq} and session.seq = line.session_seq`,
  );
  const freed = await freeReservationsOf(tx, hooks, sessionSeq);
  if (open.length === 0) return freed;
  const { ended, retried } = await settle(tx, hooks, open.toSorted((a, b) => a.seq - b.seq).map(lostEnding));
  // Somebody else may have recovered it in the meantime.
  if (ended.size > 0) tx.afterCommit(() => sessionRecovered.state({ sessionSeq, jobs: ended.size, retried }));
  return ended.size + freed;
}

// Nobody saw the end: the session was last heard before it. A cancel that was asked before the loss is what its user wanted.
function lostEnding({ seq, run_id, started_at, heard_at, cancelling }: Lost): Ending {
  const endedAt = Math.max(heard_at, started_at ?? heard_at);
  const durationMs = endedAt - (started_at ?? endedAt);
  const lost = "session lost: the process that ran it ended or fell silent";
  const ending = { seq, runId: run_id ?? "", durationMs, endedAt };
  if (cancelling === 0)
    return { ...ending, status: "lost", error: { type: "SessionLost", message: lost, trace: null } };
  const error = { type: "CancelledError", message: `the job was cancelled; ${lost}`, trace: null };
  return { ...ending, status: "cancelled", error };
}

function timedOutEnding(tx: Tx, { seq, run_id, started_at, timeout_ms }: Late): Ending {
  const message = `the run took longer than its timeout of ${timeout_ms ?? 0} ms and its process did not end it`;
  // Nobody's monotonic clock saw the end, so the wall clock has to do; it may have been moved.
  const durationMs = Math.max(0, tx.now - (started_at ?? tx.now));
  return {
    seq,
    runId: run_id ?? "",
    durationMs,
    status: "timed_out",
    error: { type: "TimeoutError", message, trace: null },
  };
}

/** Ends runs whose owner should have ended them by now: it is blocked, or its timers are. */
export async function rescueTimedOut(tx: Tx, hooks: JobHooks): Promise<number> {
  // Both times are of the owner's own clock, which beats even while its loop is blocked: hosts need not agree on the time.
  const late = await tx.all<Late>(
    sql`select line.seq, line.run_id, line.started_at, line.timeout_at - line.started_at as timeout_ms
      from daybook_line line ${indexedBy("jobs_timing_out")} cross join daybook_session session
      where line.status = 'running' and line.timeout_at is not null and session.seq = line.session_seq
        and line.timeout_at < session.last_heartbeat_at - ${2 * graceMs}
      order by line.timeout_at limit ${limits.claimParkedMax}`,
  );
  if (late.length === 0) return 0;
  const endings = late.map((job) => timedOutEnding(tx, job));
  return (await settle(tx, hooks, endings)).ended.size;
}

// The sessions that own a running job and have ended. What runs is no more than the places of all workers.
const endedOwners = sql`select session.seq
  from daybook_line line ${indexedBy("jobs_running")} cross join daybook_session session
  where line.status = 'running' and session.seq = line.session_seq and session.status <> 'running'`;

// The same for reservations, of which there are few.
const endedHolders = sql`select reservation.session_seq as seq
  from daybook_reservation reservation ${indexedBy("reservations_of_session")} cross join daybook_session session
  where reservation.status = 'active' and session.seq = reservation.session_seq and session.status <> 'running'`;

/** Looks for everything that should have been released or ended, and was not. Resolves to how much was found. */
export async function sweep(engine: Engine): Promise<number> {
  const { store, hooks } = engine;
  const ended = [endedOwners, endedHolders].map((statement) => store.read<{ seq: number }>(statement));
  const orphaned = new Set((await Promise.all(ended)).flat().map(({ seq }) => seq));
  let found = 0;
  // One that cannot be recovered must not keep the others from it.
  const failures: unknown[] = [];
  const attempt = async (unit: (tx: Tx) => Promise<number>): Promise<void> => {
    try {
      found += await store.write(unit);
    } catch (error) {
      failures.push(error);
    }
  };
  for (const seq of orphaned) await attempt((tx) => recoverSession(tx, hooks, seq));
  await attempt((tx) => expireReservations(tx, hooks));
  await attempt((tx) => rescueTimedOut(tx, hooks));
  await attempt(async (tx) => (await hooks.onSweep?.(tx)) ?? 0);
  for (let from: From | undefined, last = false; !last; last = from === undefined) {
    const { released, next } = await store.write((tx) => releaseFreeKeys(tx, from));
    found += released;
    from = next;
  }
  if (found > 0) await store.write((tx) => tx.wake(jobsChannel));
  // Programs get their time to end, and nobody here has to wait for it.
  void endOrphans(engine).catch(() => undefined);
  if (failures.length > 0) throw failures[0];
  return found;
}

/** Writes down which names this session runs, and in which queues, so that a waiting job can say who it waits for. */
export async function hostNames(engine: Engine, { hosts, queues, sessionSeq: session_seq }: Claimer): Promise<void> {
  const served = queues === null ? [null] : [...queues];
  const rows = [...hosts].flatMap((name) => served.map((queue) => ({ session_seq, name, queue })));
  if (rows.length === 0) return;
  await engine.store.write((tx) =>
    tx.run(sql`insert into daybook_session_host (session_seq, name, queue)
      ${eachRow({ session_seq: "integer", name: "text", queue: "text" }, rows)} on conflict do nothing`),
  );
}
