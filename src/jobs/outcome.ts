// How a run ended, and what follows from it for its job.
import type { RunStatus } from "../telemetry/run.ts";
import type { JobRow } from "./job.ts";
import type { RetryAdvice } from "./advice.ts";

export type Ending = {
  readonly seq: number;
  /** The fence: only who knows it may end the run. */
  readonly runId: string;
  readonly status: RunStatus;
  readonly durationMs: number;
  /** When it ended, if that is not now: a lost run ended when its session was last heard. */
  readonly endedAt?: number;
  readonly error?: { readonly type: string; readonly message: string; readonly trace: string | null } | undefined;
  /** For messages; the book knows by itself. */
  readonly job?: { readonly id: string; readonly name: string };
  readonly attempt?: number;
  /** It is of no group and no direct work. Left out when that is not known. */
  readonly plain?: boolean;
  /** It has limits, or keeps an order. Left out when that is not known. */
  readonly limited?: boolean;
  readonly lane?: number;
  readonly result?: string | null;
  /** Why what the handler returned is not kept. */
  readonly resultRefused?: string | null;
  /** The process was told to stop: the job is made again and nothing is counted. */
  readonly shutdown?: boolean;
  /** What a built-in handler knows about trying again. */
  readonly advice?: RetryAdvice | undefined;
};

/** What the next job of the chain counts, or null when the chain ends here. */
export type Again = {
  readonly attempt: number;
  readonly losses: number;
  /** How often it was lost among others: 0, 1, or 2 when it must run alone. */
  readonly alone: number;
  readonly backoff: boolean;
  /** It stands where the last one stood: what happened was not its doing. */
  readonly keepsPlace?: boolean;
  readonly atLeastMs?: number | undefined;
};

type Ended = Pick<
  JobRow,
  "origin" | "attempt" | "attempts" | "losses" | "losses_max" | "alone" | "cancel_requested_at"
>;

/** `alone` counts losses among others. After the first a job is tried again as it was, because most losses are nobody's
 *  fault; after the second it runs alone, so that only it can be to blame for the next. */
const lostTwice = 2;

export function runsAlone({ alone }: Pick<JobRow, "alone">): boolean {
  return alone === lostTwice;
}

/** As many losses as this mean that the work cannot be what ends its process: it is never blamed, and need not run alone. */
export const neverBlamed = 1_000_000;

export function againAfter(job: Ended, ending: Pick<Ending, "status" | "shutdown" | "advice">): Again | null {
  const { attempt, losses, alone } = job;
  const { advice } = ending;
  // Somebody wants it to end; that its run failed or was lost before it heard of it does not change that.
  if (job.cancel_requested_at !== null) return null;
  // Whoever asked for it directly is told, and decides.
  if (job.origin === "direct") return null;
  if (ending.shutdown === true) return { attempt, losses, alone, backoff: false, keepsPlace: true };
  switch (ending.status) {
    case "error":
    case "timed_out": {
      const atLeastMs = advice?.atLeastMs;
      if (advice?.counts === false) return { attempt, losses, alone: 0, backoff: false, atLeastMs };
      if (advice?.again === false || attempt >= job.attempts) return null;
      return { attempt: attempt + 1, losses, alone: 0, backoff: true, atLeastMs };
    }
    case "lost": {
      if (job.losses_max === 0) return null;
      // A loss is charged only to a job that ran alone; among others nobody can say which one it was.
      const counted = losses + (runsAlone(job) ? 1 : 0);
      if (counted >= job.losses_max) return null;
      const next = job.losses_max >= neverBlamed ? 0 : Math.min(alone + 1, lostTwice);
      return { attempt, losses: counted, alone: next, backoff: false, keepsPlace: true };
    }
    case "success":
    case "cancelled":
    case "skipped":
      return null;
  }
}
