// What a remote worker says of a run whose lease it holds: that it goes on, how far it is, what it logs, and how it ended. The end
// is settled as that of a run in this process is. Whoever comes too late is told what became of the job.
import { conflict, invalid, type DaybookError } from "../../core/error.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { limits } from "../../core/limits.ts";
import { quote, storableText } from "../../core/quote.ts";
import { isoTime } from "../../core/time.ts";
import { sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { checkLevel, toLogLine, writeLogs, type LogLevel } from "../../telemetry/log.ts";
import type { Engine } from "../engine.ts";
import { jobNow, type JobStatus } from "../job.ts";
import { resultJson } from "../run/run.ts";
import { settle, type Ending } from "../settle/settle.ts";
import { writeProgress } from "../worker/turn.ts";
import { expireOne } from "./expire.ts";
import {
  closeLeases,
  countLine,
  holdLease,
  openRunOf,
  renew,
  type WorkerGrant,
  type LeaseRow,
  type OpenRun,
} from "./lease.ts";
import { leaseMsOf } from "./poll.ts";

export type Said = { readonly tenant: string; readonly lease: string; readonly grant: WorkerGrant | undefined };

/** What a worker is told whenever it says that a run goes on. */
export type LeaseRenewed = {
  /** A user wants the job to end: stop, and say so with "fail". */
  readonly cancelled: boolean;
  readonly expiresAt: number;
  readonly deadlineAt: number | null;
};

/** Renews the lease: for as long as it lasted, or from now on for `lasts`. */
export function extend(engine: Engine, said: Said, lasts: Duration | undefined): Promise<LeaseRenewed> {
  const lastsMs = lasts === undefined ? undefined : leaseMsOf(lasts);
  return onOpen(engine, said, (tx, lease, run) => renewed(tx, lease, run, lastsMs));
}

export type LeaseProgressOptions = { readonly done: number; readonly note?: string };

/** Says how far the run is, from 0 to 1, and renews the lease. */
export function progress(engine: Engine, said: Said, { done, note }: LeaseProgressOptions): Promise<LeaseRenewed> {
  if (!(done >= 0 && done <= 1)) throw invalid(`done is ${quote(done)}: give a number from 0 to 1`);
  const text = note === undefined ? null : storableText(note, limits.progressNoteBytesMax);
  return onOpen(engine, said, async (tx, lease, run) => {
    await writeProgress(tx, [{ seq: run.seq, run_id: run.run_id, progress: done, note: text }]);
    return renewed(tx, lease, run);
  });
}

export type LeaseLogOptions = {
  readonly message: string;
  readonly level?: LogLevel;
  readonly fields?: Record<string, unknown>;
};

/** Writes a line into the log of the run, and renews the lease. After a thousand lines no more are kept. */
export function log(
  engine: Engine,
  said: Said,
  { message, level = "info", fields }: LeaseLogOptions,
): Promise<LeaseRenewed> {
  const line = toLogLine(message, fields, checkLevel(level, "level"));
  return onOpen(engine, said, async (tx, lease, run) => {
    if (lease.lines < limits.logLinesMax) {
      await writeLogs(tx, [{ tenant_id: tx.tenant, run_id: run.run_id, logged_at: tx.now, ...line }]);
      await countLine(tx, lease);
    }
    return renewed(tx, lease, run);
  });
}

async function renewed(tx: Tx, lease: LeaseRow, run: OpenRun, lastsMs: number = lease.lasts_ms): Promise<LeaseRenewed> {
  const expiresAt = await renew(tx, lease, run, lastsMs);
  return { cancelled: run.cancelling === 1, expiresAt, deadlineAt: run.timeout_at };
}

/** How the run of a lease ended. */
export type LeaseEnded = {
  /** The id of the job. */
  readonly id: string;
  readonly run: string;
  readonly status: JobStatus;
  /** The job that tries again; null when the chain ends here. */
  readonly retriedBy: string | null;
  /** The same lease had said so before, and its answer was lost: nothing was done again. */
  readonly already: boolean;
};

/** The work is done. */
export function settleLease(engine: Engine, said: Said, result: unknown): Promise<LeaseEnded> {
  const kept = resultJson(result);
  return endBy(engine, said, "settled", async (tx, run) => {
    if (kept.resultRefused != null) {
      const line = toLogLine(`the result is not kept: ${kept.resultRefused}`, undefined, "warn");
      await writeLogs(tx, [{ tenant_id: tx.tenant, run_id: run.run_id, logged_at: tx.now, ...line }]);
    }
    return {
      ...endingOf(tx, run),
      status: "success",
      result: kept.result ?? null,
      resultRefused: kept.resultRefused ?? null,
    };
  });
}

export type LeaseFailOptions = {
  readonly error: { readonly type?: string; readonly message: string; readonly trace?: string };
  /** False: trying again cannot help, so the job fails for good. */
  readonly retryable?: boolean;
  /** The next try waits at least this long. */
  readonly retryIn?: Duration;
};

/** The work failed: the job is tried again as its attempts and its backoff say. One that a user wants to end is cancelled. */
export function failLease(
  engine: Engine,
  said: Said,
  { error, retryable, retryIn }: LeaseFailOptions,
): Promise<LeaseEnded> {
  const atLeastMs = retryIn === undefined ? undefined : durationMs(retryIn, "retryIn");
  const described = {
    type: storableText(error.type ?? "Error", limits.nameBytesMax),
    message: storableText(error.message, limits.errorMessageBytesMax),
    trace: error.trace === undefined ? null : storableText(error.trace, limits.errorTraceBytesMax),
  };
  const advice = { again: retryable !== false, ...(atLeastMs === undefined ? {} : { atLeastMs }) };
  return endBy(engine, said, "failed", (tx, run) => {
    const ending = { ...endingOf(tx, run), error: described, advice };
    return { ...ending, status: run.cancelling === 1 ? "cancelled" : "error" };
  });
}

// No monotonic clock of ours saw it run.
function endingOf(tx: Tx, { seq, run_id: runId, started_at }: OpenRun): Pick<Ending, "seq" | "runId" | "durationMs"> {
  return { seq, runId, durationMs: Math.max(0, tx.now - started_at) };
}

function endBy(
  engine: Engine,
  said: Said,
  as: "settled" | "failed",
  end: (tx: Tx, run: OpenRun) => Awaitable<Ending>,
): Promise<LeaseEnded> {
  const act = async (tx: Tx, lease: LeaseRow, run: OpenRun): Promise<LeaseEnded> => {
    await settle(tx, engine, [await end(tx, run)]);
    await closeLeases(tx, [lease.seq], as);
    return { ...(await outcomeOf(tx, lease)), already: false };
  };
  return onLease(engine, said, act, async (tx, lease) => {
    return lease.closed_as === as ? { ...(await outcomeOf(tx, lease)), already: true } : undefined;
  });
}

function onOpen<T>(engine: Engine, said: Said, act: (tx: Tx, lease: LeaseRow, run: OpenRun) => Promise<T>): Promise<T> {
  return onLease(engine, said, act, () => Promise.resolve(undefined));
}

/** Acts on the run of an open lease. `repeated` answers for one that is closed, if that is no mistake. One that ran out is ended here
 *  and now, and that is kept, so the refusal is thrown after the commit. */
async function onLease<T>(
  engine: Engine,
  { tenant, lease: secret, grant }: Said,
  act: (tx: Tx, lease: LeaseRow, run: OpenRun) => Promise<T>,
  repeated: (tx: Tx, lease: LeaseRow) => Promise<T | undefined>,
): Promise<T> {
  const done = await engine.store.write<{ readonly answer: T } | { readonly refused: DaybookError }>(
    async (tx) => {
      const lease = await holdLease(tx, secret, grant);
      if (lease.closed_as !== null) {
        const answer = await repeated(tx, lease);
        return answer === undefined ? { refused: await tooLate(tx, lease, lease.closed_as) } : { answer };
      }
      const run = await openRunOf(tx, lease);
      if (run !== undefined && lease.expires_at > tx.now) return { answer: await act(tx, lease, run) };
      await expireOne(tx, engine, lease.seq);
      return { refused: await tooLate(tx, lease, run === undefined ? "ended" : "lost") };
    },
    { tenant, beat: false },
  );
  if ("refused" in done) throw done.refused;
  return done.answer;
}

type Outcome = Omit<LeaseEnded, "already">;

async function outcomeOf(tx: Tx, { job_seq: seq, run_id: run }: LeaseRow): Promise<Outcome> {
  const row = await tx.get<{ id: string; status: JobStatus; retriedBy: string | null }>(sql`select job.id, job.status,
      (select child.id from daybook_job child where child.retry_of = job.seq) as "retriedBy"
    from ${jobNow} where job.seq = ${seq}`);
  return { run, id: row?.id ?? "", status: row?.status ?? "failed", retriedBy: row?.retriedBy ?? null };
}

async function tooLate(tx: Tx, lease: LeaseRow, as: NonNullable<LeaseRow["closed_as"]>): Promise<DaybookError> {
  const { id, status, retriedBy, run } = await outcomeOf(tx, lease);
  const next = retriedBy === null ? "" : `, and job ${retriedBy} tries again`;
  const why = {
    settled: "it was settled already",
    failed: "it was ended with an error already",
    returned: "it was given back",
    lost: `it ran out at ${isoTime(lease.expires_at)}`,
    ended: "the run was ended by somebody else",
  }[as];
  const message = `the lease of run ${run} is over: ${why}. Job ${id} is ${status}${next}; what you did counts for nothing`;
  return conflict(message, { lost: as === "lost", lease: as, jobId: id, runId: run, status, retriedBy });
}
