// What the parts of this room share for one open book.
import type { Clock } from "../core/clock.ts";
import type { Store } from "../storage/store.ts";
import type { SessionKey } from "../telemetry/session.ts";
import type { AnyJob } from "./define.ts";
import type { Ports } from "./kind.ts";
import type { RunContext } from "./run/run.ts";

export type Engine = Ports & {
  readonly store: Store;
  readonly clock: Clock;
  /** The definitions this process knows, by name; hostJobs changes them. */
  readonly definitions: Map<string, AnyJob>;
  /** The folder for what is kept beside the book: the output of programs. */
  readonly files: string;
  /** This process's session, which may be replaced while it lives. */
  session(): SessionKey;
  /** True while others may soon take this session for dead: nothing new is claimed then. */
  overdue(): boolean;
  /** Calls back when that is over, until the function that it returns is called. */
  onTimely(hear: () => void): () => void;
  /** Adds what belongs to the front door (the book) to a handler's context. */
  contextFor(run: RunContext): unknown;
};
