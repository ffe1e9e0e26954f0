// Rescue: ends the runs that their owners will not end. Those of a session that has ended are lost; those past their timeout
// are timed out, even if their session lives. Each is done in one transaction and changes nothing the second time.
import { limits } from "../../core/limits.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, indexedBy } from "../../storage/word.ts";
import { goneSessions } from "../../telemetry/session.ts";
import { isCancelled } from "./cancel.ts";
import { endOrphans } from "../command/command-record.ts";
import type { Engine } from "../engine.ts";
import { endSilentWorkers, expireLeases } from "../lease/expire.ts";
import { expire, freeReservationsOf } from "../direct/reservation.ts";
import { sessionRecovered, type Ports } from "../kind.ts";
import { jobsChannel } from "../job.ts";
import { releaseFreeKeys, type From } from "../wait/park.ts";
import { lockJobs } from "../lock-order.ts";
import { settle, type Ending } from "./settle.ts";
import { graceMs } from "../run/run.ts";

type Open = { readonly seq: number; readonly runId: string; readonly startedAt: number };
type Lost = Open & { readonly heardAt: number; readonly cancelling: number };
type Late = Open & { readonly timeoutMs: number };

/** Ends what a dead session was running. Part of the transaction that declares it dead, or of a sweep after it. */
export async function recoverSession(tx: Tx, ports: Ports, sessionSeq: number): Promise<number> {
  const open = await tx.all<Lost>(
    sql`select line.seq, line.run_id as "runId", line.started_at as "startedAt",
        coalesce(session.stopped_at, session.last_heartbeat_at) as "heardAt",
        case when ${isCancelled} then 1 else 0 end as cancelling
      from daybook_line line ${indexedBy("jobs_running")} cross join daybook_session session
      where line.status = 'running' and line.session_seq = ${sessionSeq} and session.seq = line.session_seq`,
  );
  const endings = open.toSorted((a, b) => a.seq - b.seq).map(lostEnding);
  await lockJobs(tx, endings, sessionSeq);
  const freed = await freeReservationsOf(tx, ports, sessionSeq);
  if (open.length === 0) return freed;
  const { late, retried } = await settle(tx, ports, endings);
  // Another process may have recovered it in the meantime.
  const ended = open.length - late.size;
  if (ended > 0) tx.afterCommit(() => sessionRecovered.state({ sessionSeq, jobs: ended, retried }));
  return ended + freed;
}

// No process saw the end: the session was last heard before it. A cancel that was asked before the loss is what its user wanted.
function lostEnding({ seq, runId, startedAt, heardAt, cancelling }: Lost): Ending {
  const endedAt = Math.max(heardAt, startedAt);
  const lost = "session lost: the process that ran it ended or fell silent";
  const ending = { seq, runId, durationMs: endedAt - startedAt, endedAt };
  if (cancelling === 0) return { ...ending, status: "lost", error: toError("SessionLost", lost) };
  return { ...ending, status: "cancelled", error: toError("CancelledError", `the job was cancelled; ${lost}`) };
}

function timedOutEnding(tx: Tx, { seq, runId, startedAt, timeoutMs }: Late): Ending {
  const message = `the run took longer than its timeout of ${timeoutMs} ms and its process did not end it`;
  // No monotonic clock saw the end, so the wall clock has to do; it may have been moved.
  const durationMs = Math.max(0, tx.now - startedAt);
  return { seq, runId, durationMs, status: "timed_out", error: toError("TimeoutError", message) };
}

function toError(type: string, message: string): NonNullable<Ending["error"]> {
  return { type, message, trace: null };
}

/** Ends runs whose owner should have ended them by now: it is blocked, or its timers are. */
export async function rescueTimedOut(tx: Tx, ports: Ports): Promise<number> {
  // Both times are of the owner's own clock, which beats even while its loop is blocked: hosts need not agree on the time, but for
  // a beat that was stamped while the clock ran ahead.
  const late = await tx.all<Late>(
    sql`select line.seq, line.run_id as "runId", line.started_at as "startedAt",
        line.timeout_at - line.started_at as "timeoutMs"
      from daybook_line line ${indexedBy("jobs_timing_out")} cross join daybook_session session
      where line.status = 'running' and line.timeout_at is not null and session.seq = line.session_seq
        and line.timeout_at < session.last_heartbeat_at - ${2 * graceMs}
        and session.last_heartbeat_at <= ${tx.now + limits.clockAheadMs}
      order by line.timeout_at limit ${limits.claimParkedMax}`,
  );
  if (late.length === 0) return 0;
  const endings = late.map((job) => timedOutEnding(tx, job));
  return endings.length - (await settle(tx, ports, endings)).late.size;
}

// The sessions that have ended and own a running job (no more than there are places) or a reservation (few).
const orphans = sql`select session.seq
    from daybook_line line ${indexedBy("jobs_running")} cross join daybook_session session
    where line.status = 'running' and session.seq = line.session_seq and session.status <> 'running'
  union all select session.seq
    from daybook_reservation reservation ${indexedBy("reservations_of_session")} cross join daybook_session session
    where reservation.status = 'active' and session.seq = reservation.session_seq and session.status <> 'running'`;

/** Looks for everything that should have been released or ended, and was not. Resolves to how much was found. */
export async function sweep(engine: Engine): Promise<number> {
  const { store, kinds } = engine;
  const orphaned = new Set((await store.read<{ seq: number }>(orphans)).map(({ seq }) => seq));
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
  for (const seq of orphaned) await attempt((tx) => recoverSession(tx, engine, seq));
  await attempt((tx) => expire(tx, engine));
  await attempt((tx) => expireLeases(tx, engine));
  await attempt(endSilentWorkers);
  // By a clock that was set, every run would be long past its timeout.
  if (store.time.settled(limits.clockSettleMs) !== null) await attempt((tx) => rescueTimedOut(tx, engine));
  await attempt(async (tx) => {
    let released = 0;
    for (const kind of Object.values(kinds)) released += await kind.sweep(tx);
    return released;
  });
  for (let from: From | undefined, last = false; !last; last = from === undefined) {
    const { released, next } = await store.write((tx) => releaseFreeKeys(tx, from));
    found += released;
    from = next;
  }
  if (found > 0) await store.write((tx) => tx.wake(jobsChannel));
  // Programs get their time to end, and the sweep does not wait for it.
  void endOrphans(engine).catch(() => undefined);
  if (failures.length > 0) throw failures[0];
  return found;
}

export type Recovery = {
  readonly dryRun: boolean;
  /** Runs of sessions that have ended, or whose process is gone from this host. */
  readonly lost: number;
  readonly reservations: number;
  /** How much was ended or released in all, or to a tenant of these two; 0 in a dry run. */
  readonly recovered: number;
};

type DryRun = { readonly dryRun?: boolean };

/** What a worker's sweep does, or in a dry run would do: for the whole book, of which a tenant that asks is told its own. */
export async function recover(engine: Engine, options: DryRun, seenBy: string | null = null): Promise<Recovery> {
  refuseUnknown(options, ["dryRun"], "recover");
  const { lost, reservations } = await countOrphaned(engine, seenBy);
  const dryRun = options.dryRun ?? false;
  if (dryRun) return { dryRun, lost, reservations, recovered: 0 };
  let recovered = await sweep(engine);
  // A worker goes on meanwhile; the caller's process may be gone before the programs have had their time to end.
  await endOrphans(engine);
  if (seenBy !== null) {
    const left = await countOrphaned(engine, seenBy);
    recovered = Math.max(0, lost + reservations - left.lost - left.reservations);
  }
  return { dryRun, lost, reservations, recovered };
}

async function countOrphaned(engine: Engine, seenBy: string | null): Promise<Pick<Recovery, "lost" | "reservations">> {
  // One that was killed a moment ago is called running until a process looks for it.
  const gone = (await goneSessions(engine.store)).map(({ seq }) => seq);
  const isOver = sql`(session.status <> 'running' or session.seq ${anyOf("integer", gone)})`;
  const isOwn = seenBy === null ? sql`` : sql`and lane.tenant_id = ${seenBy}`;
  const [found] = await engine.store.readHeavy<{ lost: number; reservations: number }>(sql`select
    (select count(*) from daybook_line line join daybook_session session on session.seq = line.session_seq
      join daybook_lane lane on lane.seq = line.lane_seq where line.status = 'running' and ${isOver} ${isOwn}) as lost,
    (select count(*) from daybook_reservation reservation join daybook_session session on session.seq = reservation.session_seq
      join daybook_lane lane on lane.seq = reservation.lane_seq
      where reservation.status = 'active' and ${isOver} ${isOwn}) as reservations`);
  return { lost: found?.lost ?? 0, reservations: found?.reservations ?? 0 };
}
