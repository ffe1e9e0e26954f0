import type { EventRow } from "../event.ts";

/** An event as a live listener hears it. */
export type LiveEvent<Payload = unknown> = {
  /** Null when it was emitted: then it is not in the book. */
  readonly id: string | null;
  readonly tenant: string;
  readonly topic: string;
  /** All listeners share this object: do not change it. */
  readonly payload: Payload;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** When it was emitted or published, in epoch milliseconds. */
  readonly at: number;
  /** How many events led to this one. */
  readonly chainDepth: number;
  /** The nearest event of the chain that is in the book (it may be this one), and the root of that chain. */
  readonly stored: { readonly id: string; readonly rootId: string } | null;
  /** The run that emitted or published it, if any, and the run that began the chain. */
  readonly causeRunId: string | null;
  readonly rootRunId: string | null;
};

/** A published event as live listeners hear it. */
export function toLiveEvent(row: EventRow): LiveEvent {
  return {
    id: row.id,
    tenant: row.tenant_id,
    topic: row.topic,
    payload: JSON.parse(row.payload) as unknown,
    key: row.key,
    headers: row.headers === null ? {} : (JSON.parse(row.headers) as Record<string, string>),
    at: row.published_at,
    chainDepth: row.chain_depth,
    stored: { id: row.id, rootId: row.root_event_id },
    causeRunId: row.cause_run_id,
    rootRunId: row.root_run_id,
  };
}
