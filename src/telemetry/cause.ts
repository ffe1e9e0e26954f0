// What is being executed right now. A row that is made meanwhile carries the run's id and the root of its chain, so
// "what did this cause" and "why did this happen" are queries.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Cause } from "../core/cause.ts";

export type { Cause } from "../core/cause.ts";

const current = new AsyncLocalStorage<Cause>();

export function currentCause(): Cause | undefined {
  return current.getStore();
}

export function withCause<T>(cause: Cause, run: () => T): T {
  return current.run(cause, run);
}
