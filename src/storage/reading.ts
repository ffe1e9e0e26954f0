// Who reads, by which verb, and for how long: known where a verb of the book begins, and asked for where storage runs
// its statements, many calls deeper.
import { AsyncLocalStorage } from "node:async_hooks";
import { limits } from "../core/limits.ts";

export type Reading = {
  /** Whose share of the reads it is; the engine's own have one as well. */
  readonly tenant: string;
  /** What the caller called, for the error that ends it. */
  readonly verb: string;
  readonly msMax: number;
};

const engine: Reading = { tenant: "", verb: "a read of the engine", msMax: limits.reportMs };
const current = new AsyncLocalStorage<Reading>();

/** All that `work` reads is read in the name of this verb. */
export function readAs<T>(
  { msMax = limits.readMs, ...who }: Omit<Reading, "msMax"> & { msMax?: number },
  work: () => T,
): T {
  return current.run({ ...who, msMax }, work);
}

/** What the caller says about itself comes first, then the verb under way. */
export function readingNow(given: Partial<Reading> = {}): Reading {
  return { ...(current.getStore() ?? engine), ...given };
}
