import { AsyncLocalStorage } from "node:async_hooks";

// The run that a row is made by, and what it hangs on to. Who is being executed is known to telemetry (telemetry/cause.ts).
export type Cause = {
  readonly runId: string;
  /** The run that began the chain; its own id for a run that nothing caused. */
  readonly rootRunId: string;
  /** The run that made this one's job, if one did. */
  readonly parentRunId?: string | null;
  /** What is being listened to: an event that is published meanwhile goes on its chain. */
  readonly event?: { readonly id: string; readonly rootId: string; readonly depth: number };
  /** How deep in a chain of events, also of those that are only emitted. */
  readonly depth?: number;
};

// What is being executed right now. A row that is made meanwhile carries the run's id and the root of its chain, so
// "what did this cause" and "why did this happen" are queries.

/** What a job takes along from a live run, and hands on to the jobs it makes: that run is written down later, and what it
 *  heard perhaps never, so the job's own row must say how deep in a chain of events it stands. */
export type Heard = Pick<Cause, "event" | "depth">;

export function heardBy(cause: Cause | undefined): Heard | undefined {
  if (cause?.depth === undefined) return undefined;
  const { depth, event } = cause;
  return event === undefined ? { depth } : { depth, event };
}

/** What was heard by the live run that made a job, or made the job that made it. */
export function heardOf({ about }: { readonly about: string | null }): Heard {
  return about === null ? {} : ((JSON.parse(about) as { heard?: Heard }).heard ?? {});
}

const current = new AsyncLocalStorage<Cause>();

export function currentCause(): Cause | undefined {
  return current.getStore();
}

export function withCause<T>(cause: Cause, run: () => T): T {
  return current.run(cause, run);
}
