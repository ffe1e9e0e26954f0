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
