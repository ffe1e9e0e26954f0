// Whether a job, a delivery or a call is tried again after a failure, and how long that retry waits.
import { durationMs, type Duration } from "./duration.ts";
import { invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";
import { jitter, type Random } from "./id.ts";
import { refuseUnknown } from "./suggest.ts";
import { rememberFor } from "./remember.ts";

/** The n-th retry waits `base · factorⁿ⁻¹`, at most `max`, give or take `spread` of it; or the n-th of a list. */
export type Backoff =
  | { readonly base?: Duration; readonly factor?: number; readonly max?: Duration; readonly spread?: number }
  | readonly Duration[];

export function checkBackoff(backoff: Backoff): Backoff {
  if (isList(backoff)) {
    if (backoff.length === 0 || backoff.length > limits.backoffStepsMax) {
      throw invalid(`a list of backoffs has 1 to ${limits.backoffStepsMax} steps, not ${backoff.length}`);
    }
    for (const step of backoff) durationMs(step, "backoff");
    return backoff;
  }
  if (typeof backoff !== "object" || backoff === null) {
    throw invalid(`backoff is ${quote(backoff)}: give a list of waits, such as ["5s", "1m"], or { base, factor, max }`);
  }
  refuseUnknown(backoff, ["base", "factor", "max", "spread"], "backoff");
  const { factor, spread } = exponential(backoff);
  if (!(factor >= 1 && factor <= 100)) throw invalid(`backoff factor ${factor} is not from 1 to 100`);
  if (!(spread >= 0 && spread <= 1)) throw invalid(`backoff spread ${spread} is not from 0 to 1`);
  return backoff;
}

/** How long the retry after `failures` failures waits. */
export function backoffMs(backoff: Backoff | null, failures: number, random: Random): number {
  if (backoff !== null && isList(backoff)) {
    return durationMs(backoff[Math.min(failures, backoff.length) - 1] ?? 0, "backoff");
  }
  const { base, factor, max, spread } = exponential(backoff ?? {});
  const exact = base === 0 ? 0 : Math.min(max, base * factor ** (failures - 1));
  // Jitter keeps jobs that failed together from failing together again; the cap holds with it.
  return Math.round(Math.min(max, jitter(random, exact, spread)));
}

type Exponential = { base: number; factor: number; max: number; spread: number };

function exponential(backoff: Exclude<Backoff, readonly Duration[]>): Exponential {
  const { base = "10s", factor = 2, max = "1h", spread = 0.1 } = backoff;
  return { base: durationMs(base, "backoff base"), factor, max: durationMs(max, "backoff max"), spread };
}

function isList(backoff: Backoff): backoff is readonly Duration[] {
  return Array.isArray(backoff);
}

/** What a built-in handler knows about its failure. */
export type RetryAdvice = {
  /** False: the same again would fail in the same way. */
  readonly again?: boolean;
  /** False: it was not tried at all, so no attempt is counted. */
  readonly counts?: boolean;
  /** True: there was nothing to do, so its run is skipped. */
  readonly skip?: boolean;
  /** The next try waits at least this long. */
  readonly atLeastMs?: number;
};

// Beside the error and not on it: what is thrown may be frozen, and is shown to people.
const adviceFor = rememberFor((_error: Error): { advice?: RetryAdvice } => ({}));

/** The error, with advice for the settle of its run. */
export function advise(error: Error, advice: RetryAdvice): Error {
  adviceFor(error).advice = advice;
  return error;
}

/** An error for a handler to throw when trying again cannot help: the job fails at once, whatever attempts are left.
 *
 *  ```ts
 *  const charge = job("charge", {
 *    run(card: { id: string; expired: boolean }) {
 *      if (card.expired) throw giveUp(`card ${card.id} has expired`);
 *    },
 *  });
 *  ``` */
export function giveUp(why: string, options?: { readonly cause?: unknown }): Error {
  const error = new Error(why, options);
  error.name = "GivenUp";
  return advise(error, { again: false });
}

export function adviceOf(thrown: unknown): RetryAdvice | undefined {
  return Error.isError(thrown) ? adviceFor(thrown).advice : undefined;
}
