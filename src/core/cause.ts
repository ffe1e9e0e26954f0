import { AsyncLocalStorage } from "node:async_hooks";

/** The run that is being executed. A row that is made meanwhile carries its id and the root of its chain, so "what did this cause"
 *  and "why did this happen" are queries. */
export type Cause = {
  readonly runId: string;
  /** The run that began the chain; the run's own id when nothing caused it. */
  readonly rootRunId: string;
  /** The run that made this one's job, if one did. */
  readonly parentRunId?: string | null;
  /** The event that is being heard; an event that is published meanwhile continues its chain. */
  readonly event?: { readonly id: string; readonly rootId: string; readonly depth: number };
  /** How deep the run is in a chain of events, emitted ones included. */
  readonly depth?: number;
  /** Code of the run has let an error escape: it threw in a callback, or nobody awaited a promise. True: that was the run's, and the
   *  process goes on. */
  readonly stray?: (error: unknown) => boolean;
  /** Notes an error that came after the run had ended. */
  readonly late?: (error: unknown) => void;
};

/** What a job takes from a live run and hands on to the jobs it makes. The live run is recorded later, and its event perhaps
 *  never, so the job's own row must say how deep in a chain of events it is. */
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
