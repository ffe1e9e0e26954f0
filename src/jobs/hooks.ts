// What the rooms above learn from this one, inside the transaction in which it happens. Wired at the front door.
import { defineFact } from "../core/fact.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { JobRow, JobStatus } from "./job.ts";
import type { RunStatus } from "../telemetry/run.ts";

export type JobEnded = {
  readonly tenant: string;
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  readonly attempt: number;
  /** How its run ended; null when it was cancelled before it ran. */
  readonly run: { readonly id: string; readonly status: RunStatus; readonly durationMs: number } | null;
  /** The id of the job that tries again; null when the chain ends here. */
  readonly retriedBy: string | null;
};

export type JobHooks = {
  /** A job ended; events publish it if someone listens. */
  onFact?(tx: Tx, fact: { readonly type: `job.${JobStatus}`; readonly job: JobEnded }): Awaitable<void>;
  /** By the kind of a job: it ended, by whatever way: settle, recovery, timeout, cancel or skip. The room that made it
   *  reacts. */
  onSettled?: { readonly [kind: string]: (tx: Tx, job: JobRow, outcome: JobEnded) => Awaitable<void> };
  /** By the kind of a job: whether it must wait for one before it, asked of those with a limit key under its lock. Whoever
   *  made it releases it. */
  readonly mustWait?: { readonly [kind: string]: (tx: Tx, job: OrderedJob) => Awaitable<boolean> };
  /** Looks for jobs of the rooms above that should have been released, and were not; says how many it found. */
  onSweep?(tx: Tx): Awaitable<number>;
};

export type OrderedJob = Pick<JobRow, "tenant_id" | "limit_key" | "kind" | "kind_seq">;

/** A run ended and is on disk. */
export const jobSettled = defineFact<JobEnded>("job.settled");
/** A result came from an owner that had lost the job; it was refused. */
export const jobSuperseded = defineFact<{ id: string; name: string; runId: string; status: RunStatus }>(
  "job.superseded",
);
/** Log lines and progress that could not be written were given up, so that work goes on. */
export const runNotesDropped = defineFact<{ count: number }>("run.notes_dropped");
/** The last job of a group ended. */
export const groupEnded = defineFact<{ tenant: string; id: string; status: string }>("group.ended");
export const jobsClaimed = defineFact<{ count: number; sessionSeq: number }>("jobs.claimed");
export const sessionRecovered = defineFact<{ sessionSeq: number; jobs: number; retried: number }>("session.recovered");

export async function tellEnded(tx: Tx, hooks: JobHooks, row: JobRow, ended: JobEnded): Promise<void> {
  if (row.kind !== null) await hooks.onSettled?.[row.kind]?.(tx, row, ended);
  await hooks.onFact?.(tx, { type: `job.${ended.status}`, job: ended });
  if (jobSettled.heard) tx.afterCommit(() => jobSettled.state(ended));
}
