// Leases that are over without their worker's word: those that ran out, and those that it gave back. Their runs end as those of a
// lost process do, or of one that shut down, by the same settle.
import type { Timer } from "../../core/clock.ts";
import { isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { amongThe, forUpdate, indexedBy, skipLocked, skipLockedOf } from "../../storage/word.ts";
import { endSilentSession, type SessionRow } from "../../telemetry/session.ts";
import type { Engine } from "../engine.ts";
import { jobsChannel, seqsOf } from "../job.ts";
import type { Ports } from "../kind.ts";
import { isCancelled } from "../settle/cancel.ts";
import { settle, type Ending } from "../settle/settle.ts";
import { closeLeases } from "./lease.ts";

type Open = {
  readonly seq: number;
  readonly job_seq: number;
  readonly run_id: string;
  readonly renewed_at: number;
  readonly started_at: number;
  readonly timeout_at: number | null;
  readonly cancelling: number;
};

/** Leases and their runs, those locked by others left out. `started_at` is null when somebody else ended the run. */
async function openLeases(tx: Tx, which: Sql): Promise<(Open | (Pick<Open, "seq"> & { readonly started_at: null }))[]> {
  return tx.all(sql`select lease.seq, lease.job_seq, lease.run_id, lease.renewed_at, line.started_at, line.timeout_at,
      case when ${isCancelled} then 1 else 0 end as cancelling
    from daybook_lease lease left join daybook_line line
      on line.seq = lease.job_seq and line.run_id = lease.run_id and line.started_at is not null
    where lease.closed_at is null and ${which}
    order by lease.expires_at, lease.seq limit ${limits.claimParkedMax} ${skipLockedOf("lease")}`);
}

/** Ends the runs whose leases have run out, some hundred at a time; says how many. */
export async function expireLeases(tx: Tx, ports: Ports): Promise<number> {
  await redate(tx);
  const ended = await endLeases(tx, ports, sql`lease.expires_at <= ${tx.now}`, (lease) => lose(tx, lease));
  await forget(tx);
  return ended;
}

/** The same for one lease, which the caller holds. */
export async function expireOne(tx: Tx, ports: Ports, seq: number): Promise<void> {
  await endLeases(tx, ports, sql`lease.seq = ${seq}`, (lease) => lose(tx, lease));
}

function lose(tx: Tx, lease: Open): End {
  return { as: "lost", ending: ranOut(tx, lease) };
}

/** Ends the runs of these leases, so that their jobs begin again elsewhere, and nothing is counted. */
export async function returnLeases(tx: Tx, ports: Ports, which: Sql): Promise<number> {
  // Those that a request of the worker holds are waited for: none may stay behind.
  await tx.all(
    sql`select seq from daybook_lease lease where lease.closed_at is null and ${which} order by seq ${forUpdate}`,
  );
  return endLeases(tx, ports, which, (lease) => ({
    as: "returned",
    ending: givenBack(tx, lease),
  }));
}

type End = { readonly as: "lost" | "returned"; readonly ending: Ending };

async function endLeases(tx: Tx, ports: Ports, which: Sql, end: (lease: Open) => End): Promise<number> {
  const leases = await openLeases(tx, which);
  const open = leases.filter((lease): lease is Open => lease.started_at !== null);
  const ends = open.map((lease) => ({ lease, ...end(lease) })).toSorted((a, b) => a.lease.job_seq - b.lease.job_seq);
  const { late } = await settle(
    tx,
    ports,
    ends.map(({ ending }) => ending),
  );
  const ours = ends.filter(({ lease }) => !late.has(lease.run_id));
  for (const [as, all] of Map.groupBy(ours, (each) => each.as)) {
    await closeLeases(tx, seqsOf(all.map(({ lease }) => lease)), as);
  }
  await closeLeases(tx, seqsOf(leases), "ended");
  if (ours.length > 0) tx.wake(jobsChannel);
  return ours.length;
}

/** How a run ends whose lease ran out: as that of a lost process. It ended when its worker was last heard. */
function ranOut(tx: Tx, lease: Open): Ending {
  const { job_seq: seq, run_id: runId, started_at: startedAt, timeout_at: timeoutAt } = lease;
  if (timeoutAt !== null && timeoutAt <= tx.now) {
    const message = `the run took longer than its timeout of ${timeoutAt - startedAt} ms`;
    const error = { type: "TimeoutError", message, trace: null };
    return { seq, runId, durationMs: tx.now - startedAt, status: "timed_out", error };
  }
  const endedAt = Math.max(lease.renewed_at, startedAt);
  const lost = "lease lost: its worker ended or fell silent";
  const ending = { seq, runId, durationMs: endedAt - startedAt, endedAt };
  if (lease.cancelling === 0) {
    return { ...ending, status: "lost", error: { type: "LeaseLost", message: lost, trace: null } };
  }
  const message = `the job was cancelled; ${lost}`;
  return { ...ending, status: "cancelled", error: { type: "CancelledError", message, trace: null } };
}

function givenBack(tx: Tx, { job_seq: seq, run_id: runId, started_at: startedAt }: Open): Ending {
  const error = { type: "ShutdownError", message: "its worker left; the job runs again elsewhere", trace: null };
  return { seq, runId, durationMs: tx.now - startedAt, status: "cancelled", shutdown: true, error };
}

// Given while the clock ran ahead, a lease would hold its job until then, however short it is.
async function redate(tx: Tx): Promise<void> {
  await tx.run(sql`update daybook_lease as lease set renewed_at = ${tx.now}, expires_at = ${tx.now} + lasts_ms
    where closed_at is null and expires_at > ${tx.now + limits.clockAheadMs} and renewed_at > ${tx.now + limits.clockAheadMs}`);
}

async function forget(tx: Tx): Promise<void> {
  const old = sql`select seq from daybook_lease lease where closed_at is not null
    and closed_at < ${tx.now - limits.leaseKeptMs} order by closed_at limit ${limits.claimParkedMax} ${skipLocked}`;
  await tx.run(sql`delete from daybook_lease where seq ${amongThe(old)}`);
}

/** Ends the sessions of remote workers that hold nothing and are silent. */
export async function endSilentWorkers(tx: Tx): Promise<number> {
  const silent =
    await tx.all<SessionRow>(sql`select * from daybook_session session where status = 'running' and kind = 'remote'
    and last_heartbeat_at < ${tx.now - limits.remoteSilentMs} and not exists (select 1 from daybook_lease lease
      where lease.session_seq = session.seq and lease.closed_at is null) order by seq limit ${limits.claimParkedMax}`);
  let ended = 0;
  for (const session of silent) if (await endSilentSession(tx, session)) ended++;
  return ended;
}

/** Ends leases soon after they ran out, also where no worker of this process sweeps. */
export function watchLeases(engine: Engine) {
  return engine.store.keep("leases", () => createLeaseWatch(engine));
}

function createLeaseWatch(engine: Engine) {
  const { store, clock } = engine;
  let timer: Timer | undefined;
  let due = Number.POSITIVE_INFINITY;

  function by(time: number): void {
    if (time >= due) return;
    timer?.cancel();
    due = time;
    timer = clock.after(Math.max(0, time - clock.now()), () => void expire());
  }

  // A failure is made up for by the next try, or by the sweep of another process.
  async function expire(): Promise<void> {
    due = Number.POSITIVE_INFINITY;
    try {
      await store.write((tx) => expireLeases(tx, engine), { beat: false });
      await look();
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "closed") by(clock.now() + retryMs);
    }
  }

  async function look(): Promise<void> {
    const next = await nextExpiry(store);
    // The time of transactions may be a little behind the clock.
    if (next !== null) by(Math.max(next, clock.now() + lagMs));
  }

  return {
    /** A lease runs out then. */
    by,
    look,
    /** Ends those that have run out by now. */
    async expireDue() {
      const next = await nextExpiry(store);
      if (next !== null && next <= clock.now()) await store.write((tx) => expireLeases(tx, engine), { beat: false });
    },
  };
}

const retryMs = 1000;
const lagMs = 20;

async function nextExpiry(store: Store): Promise<number | null> {
  const [row] = await store.read<{ at: number | null }>(sql`select min(expires_at) as at
    from daybook_lease lease ${indexedBy("leases_to_expire")} where closed_at is null`);
  return row?.at ?? null;
}
