// What a built-in handler knows about its failure: whether trying again can help, and not before when.
import { rememberFor } from "./remember.ts";

export type RetryAdvice = {
  /** False: the same again would fail in the same way. */
  readonly again?: boolean;
  /** False: it was not tried at all, so no attempt is counted. */
  readonly counts?: boolean;
  /** The next try waits at least this long. */
  readonly atLeastMs?: number;
};

// Beside the error and not on it: what is thrown may be frozen, and is shown to people.
const adviceFor = rememberFor((_error: Error): { advice?: RetryAdvice } => ({}));

/** The error, with advice for whoever settles the run. */
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
