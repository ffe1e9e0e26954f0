// How a run ended, and what follows from it for its job.
import type { RunStatus } from "../telemetry/run.ts";
import type { JobRow, JobStatus } from "./job.ts";
import type { RetryAdvice } from "./advice.ts";

export type Ending = {
  readonly seq: number;
  /** The fence: only who knows it may end the run. */
  readonly runId: string;
  readonly status: RunStatus;
  readonly durationMs: number;
  readonly error?: { readonly type: string; readonly message: string; readonly trace: string | null } | undefined;
  /** For messages; the book knows by itself. */
  readonly job?: { readonly id: string; readonly name: string };
  /** It is of no group and no direct work. Left out when that is not known. */
  readonly plain?: boolean;
  /** JSON text. */
  readonly result?: string | null;
  /** Why what the handler returned is not kept. */
  readonly resultRefused?: string | null;
  /** The process was told to stop: the job is made again and nothing is counted. */
  readonly shutdown?: boolean;
  /** What a built-in handler knows about trying again. */
  readonly advice?: RetryAdvice | undefined;
};

export function jobStatusOf(status: RunStatus): JobStatus {
  switch (status) {
    case "success":
      return "completed";
    case "cancelled":
      return "cancelled";
    case "skipped":
      return "skipped";
    case "error":
    case "timed_out":
    case "lost":
      return "failed";
  }
}

/** What the next job of the chain counts, or null when the chain ends here. */
export type Again = {
  readonly attempt: number;
  readonly losses: number;
  readonly alone: boolean;
  readonly backoff: boolean;
  /** It waits at least this long, whatever its backoff says. */
  readonly atLeastMs?: number | undefined;
};

type Ended = Pick<
  JobRow,
  "origin" | "attempt" | "attempts" | "losses" | "losses_max" | "alone" | "cancel_requested_at"
>;

/** The value of `alone` of a job whose start is on disk. One that runs alone is to blame for what ends the process now;
 *  one that may not be lost at all (`losses: 0`) must not be given a second start. */
export const begun = 2;

/** As many losses as this mean that the work cannot be what ends its process: it is never blamed, and need not run alone. */
export const neverBlamed = 1_000_000;

export function againAfter(job: Ended, ending: Pick<Ending, "status" | "shutdown" | "advice">): Again | null {
  const { attempt, losses, alone } = job;
  const mayBeLost = job.losses_max > 0 && job.losses_max < neverBlamed;
  const { advice } = ending;
  // Somebody wants it to end; that its run failed or was lost before it heard of it does not change that.
  if (job.cancel_requested_at !== null) return null;
  // Whoever asked for it directly is told, and decides.
  if (job.origin === "direct") return null;
  if (ending.shutdown === true) return { attempt, losses, alone: mayBeLost && alone > 0, backoff: false };
  switch (ending.status) {
    case "error":
    case "timed_out": {
      const atLeastMs = advice?.atLeastMs;
      if (advice?.counts === false) return { attempt, losses, alone: false, backoff: false, atLeastMs };
      if (advice?.again === false || attempt >= job.attempts) return null;
      return { attempt: attempt + 1, losses, alone: false, backoff: true, atLeastMs };
    }
    case "lost": {
      const counted = losses + chargedLosses(job, ending);
      const givenUp = alone === begun && counted >= job.losses_max;
      return givenUp ? null : { attempt, losses: counted, alone: mayBeLost, backoff: false };
    }
    case "success":
    case "cancelled":
    case "skipped":
      return null;
  }
}

/** A loss is charged only to a job that had begun alone; among others nobody can say which one it was. */
export function chargedLosses(job: Pick<JobRow, "alone" | "losses_max">, ending: Pick<Ending, "status">): number {
  return ending.status === "lost" && job.alone === begun && job.losses_max > 0 ? 1 : 0;
}
