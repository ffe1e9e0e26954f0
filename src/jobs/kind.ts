// A kind of job is a value: what the end of its jobs means, what that locks first, when they must wait, and what leaves with them.
// The front door hands in the kinds and the port through which facts go out; both act in the transaction in which it happens. A kind
// is made of the plain one and says only what differs.
import { defineFact } from "../core/fact.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { JobRow, JobStatus } from "./job.ts";
import type { Notices } from "./notice.ts";
import type { RunStatus } from "../telemetry/run.ts";

export type JobKind = {
  /** They ended together, by whatever way: settle, recovery, timeout, cancel or skip. */
  ended(tx: Tx, ended: readonly Ended[]): Awaitable<void>;
  /** Before `finish` ends a job: locks what is locked before jobs (lock-order.ts). */
  hold(tx: Tx, kindSeq: number | null): Awaitable<unknown>;
  /** Before the ends of a batch are told: locks what they will decide upon, all of it in one order, because two batches that met
   *  it in the order of their jobs would wait for each other. */
  lock(tx: Tx, kindSeqs: readonly number[]): Awaitable<void>;
  /** The kind need not hear that a job succeeded at this attempt. It spares the path of most jobs a read each. */
  quiet(attempt: number): boolean;
  /** Whether a job with a limit key must wait for one before it, asked under the key's lock. Its room, or its time, releases it. */
  mustWait(tx: Tx, job: OrderedJob): Awaitable<MustWait>;
  /** `finish` ended a job with limits: once that is on disk, the kind lets the jobs go that wait for its end. */
  finished(tx: Tx, job: OrderedJob): Awaitable<unknown>;
  /** Jobs leave by retention: what the room keeps for them, under these numbers, leaves with them. It says how much did. Null when
   *  the room keeps nothing. */
  readonly removed: ((tx: Tx, tenant: string, kindSeqs: readonly number[]) => Awaitable<number>) | null;
  /** For explain: what a job that waits for its order stands behind, and what stands there when no open job does. */
  readonly order: { readonly behind: string; readonly instead: string | null };
  /** Looks for jobs that should have been released, and were not; says how many it found. */
  sweep(tx: Tx): Awaitable<number>;
  /** Whether jobs of this name are its own: nobody else makes them, and a remote worker may not take them. */
  ownsName(name: string): boolean;
};

export const plainKind: JobKind = {
  ended: () => undefined,
  hold: () => undefined,
  lock: () => undefined,
  quiet: () => false,
  mustWait: () => false,
  finished: () => undefined,
  removed: null,
  order: { behind: "It comes after the one that was made before it", instead: null },
  sweep: () => 0,
  ownsName: () => false,
};

/** A job of its own, or of a kind that this process does not know, is plain. */
export function kindOf({ kinds }: Pick<Ports, "kinds">, { kind }: Pick<JobRow, "kind">): JobKind {
  return (kind === null ? undefined : kinds[kind]) ?? plainKind;
}

export type Announce = {
  /** Whether a listener wants to hear of the ends of jobs now. It spares each end a read. */
  wantsJobs(tx: Tx): Awaitable<boolean>;
  jobEnded(tx: Tx, ended: JobEnded, row: JobRow): Awaitable<void>;
  /** Something else happened, in another room; events publish it if someone of the tenant listens. */
  tell(tx: Tx, tenant: string, fact: Told): Awaitable<void>;
  /** Events are a room beside the others that say something: what is given is checked before any transaction begins … */
  prepareEvent(event: unknown, payload: unknown, options: { readonly priority?: number }): Promise<ToSay>;
  /** … and said in one. Returns the event's id. */
  say(tx: Tx, tenant: string, said: ToSay, headers: Readonly<Record<string, string>>): Promise<string>;
};

/** What happened, and what it happened to: facts of one key are heard in order. */
export type Told = {
  readonly topic: string;
  readonly payload: unknown;
  readonly key: string;
  /** The caller has locked what it happened to, so no other transaction tells of it at the same time. */
  readonly inOrder: true;
};

/** What is to be said, checked. The payload is JSON. */
export type ToSay = { readonly topic: string; readonly payload: string; readonly priority: number };

export type Ports = {
  /** By the column `kind` of their jobs. */
  readonly kinds: { readonly [kind: string]: JobKind };
  /** Left out where there are no listeners. */
  readonly announce?: Announce;
  /** Left out where no calls are made. */
  readonly notices?: Notices;
  /** A job has failed, and that is on disk. Told in this process only. */
  jobFailed?(job: JobEnded): void;
  /** Runs have ended, and are on disk. Told once for a batch, in this process only. */
  runsEnded?(): void;
};

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
    /** Enough for a listener; the trace is in the run. */
    readonly error: { readonly type: string; readonly message: string } | null;
  } | null;
  /** The id of the job that tries again; null when the chain ends here. */
  readonly retriedBy: string | null;
};

export type Ended = { readonly job: JobRow; readonly outcome: JobEnded };
export type MustWait = boolean | { readonly until: number };
export type OrderedJob = Pick<JobRow, "tenant_id" | "limit_key" | "kind" | "kind_seq">;

export const jobSettled = defineFact<JobEnded>("job.settled");
/** A result came from an owner that had lost the job; it was refused. */
export const jobSuperseded = defineFact<{ id: string; name: string; runId: string; status: RunStatus }>(
  "job.superseded",
);
/** Log lines and progress that could not be written were given up, so that work goes on. */
export const runNotesDropped = defineFact<{ count: number }>("run.notes_dropped");
export const groupEnded = defineFact<{ tenant: string; id: string; status: string }>("group.ended");
export const jobsClaimed = defineFact<{ count: number; sessionSeq: number }>("jobs.claimed");
export const sessionRecovered = defineFact<{ sessionSeq: number; jobs: number; retried: number }>("session.recovered");

export async function lockForKinds(tx: Tx, { kinds }: Ports, rows: readonly JobRow[]): Promise<void> {
  for (const [name, kind] of Object.entries(kinds)) {
    const seqs = rows.flatMap((row) => (row.kind === name ? (row.kind_seq ?? []) : []));
    if (seqs.length > 0) await kind.lock(tx, [...new Set(seqs)]);
  }
}
