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
  readonly run: {
    readonly id: string;
    readonly status: RunStatus;
    readonly durationMs: number;
    /** Enough to tell somebody; the trace is in the run. */
    readonly error: { readonly type: string; readonly message: string } | null;
  } | null;
  /** The id of the job that tries again; null when the chain ends here. */
  readonly retriedBy: string | null;
};

/** What is to be said, checked. The payload is JSON. */
export type ToSay = { readonly topic: string; readonly payload: string; readonly priority: number };

export type JobHooks = {
  /** A job ended; events publish it if someone listens. */
  onFact?(tx: Tx, fact: { readonly type: `job.${JobStatus}`; readonly job: JobEnded }, row: JobRow): Awaitable<void>;
  /** Whether anybody wants to hear facts now; without it, everybody does. It spares each end a read. */
  wantsFacts?(tx: Tx): Awaitable<boolean>;
  /** By the kind of jobs, before the ends of a batch are told: the room locks what it will decide upon, all of it in one
   *  order, because two batches that met it in the order of their jobs would wait for each other. */
  readonly beforeSettled?: { readonly [kind: string]: (tx: Tx, kindSeqs: readonly number[]) => Awaitable<void> };
  /** Something else happened, in another room; events publish it if someone of the tenant listens. */
  tell?(tx: Tx, tenant: string, fact: { readonly topic: string; readonly payload: unknown }): Awaitable<void>;
  /** Events are a room beside the others that say something: what is given is checked before any transaction begins … */
  prepareEvent?(event: unknown, payload: unknown, options: { readonly priority?: number }): Promise<ToSay>;
  /** … and said in one. Returns the event's id. */
  say?(tx: Tx, tenant: string, said: ToSay, headers: Readonly<Record<string, string>>): Promise<string>;
  /** By the kind of jobs: they ended together, by whatever way: settle, recovery, timeout, cancel or skip. The room that made
   *  them reacts. */
  readonly onSettled?: { readonly [kind: string]: (tx: Tx, ended: readonly Ended[]) => Awaitable<void> };
  /** By the kind of a job: nobody needs to hear that this one succeeded. It spares the path of most jobs a read each. */
  readonly quiet?: { readonly [kind: string]: (job: SettledJob) => boolean };
  /** By the kind of a job: whether it must wait for one before it, asked of those with a limit key under its lock. Whoever
   *  made it releases it, or its time does. */
  readonly mustWait?: { readonly [kind: string]: (tx: Tx, job: OrderedJob) => Awaitable<MustWait> };
  /** By the kind of a job with limits that `finish` ended: once that is on disk, who waits for its end is let go. */
  readonly afterFinish?: { readonly [kind: string]: (tx: Tx, job: OrderedJob) => Awaitable<void> };
  /** By the kind of jobs that are pruned: what the room above keeps for them, under these numbers, leaves with them. It
   *  says how much did. */
  readonly onPruned?: {
    readonly [kind: string]: (tx: Tx, tenant: string, kindSeqs: readonly number[]) => Awaitable<number>;
  };
  /** Runs have ended, and are on disk. Told once for a batch, in this process only. */
  runsEnded?(): void;
  /** Looks for jobs of the rooms above that should have been released, and were not; says how many it found. */
  onSweep?(tx: Tx): Awaitable<number>;
};

export type Ended = { readonly job: JobRow; readonly outcome: JobEnded };
export type MustWait = boolean | { readonly until: number };
export type SettledJob = Pick<JobRow, "kind" | "attempt">;
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

export async function lockForKinds(tx: Tx, hooks: JobHooks, rows: readonly JobRow[]): Promise<void> {
  for (const [kind, lock] of Object.entries(hooks.beforeSettled ?? {})) {
    const seqs = rows.flatMap((row) => (row.kind === kind && row.kind_seq !== null ? row.kind_seq : []));
    if (seqs.length > 0) await lock(tx, [...new Set(seqs)]);
  }
}

export async function tellAllEnded(tx: Tx, hooks: JobHooks, all: readonly Ended[]): Promise<void> {
  for (const [kind, ended] of Map.groupBy(all, ({ job }) => job.kind)) {
    if (kind !== null) await hooks.onSettled?.[kind]?.(tx, ended);
  }
  for (const { job, outcome } of all) {
    await hooks.onFact?.(tx, { type: `job.${outcome.status}`, job: outcome }, job);
    if (jobSettled.heard) tx.afterCommit(() => jobSettled.state(outcome));
  }
}
