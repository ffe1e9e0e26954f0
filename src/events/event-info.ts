// An event as people and listeners see it.
import type { EventRow } from "./event.ts";

export type EventInfo = {
  readonly id: string;
  readonly tenant: string;
  readonly topic: string;
  readonly priority: number;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly publishedAt: number;
  /** Not delivered before; the same as `publishedAt` unless it was delayed. */
  readonly availableAt: number;
  /** The event that began the chain; its own id when nothing caused it. */
  readonly rootEventId: string;
  readonly parentEventId: string | null;
  /** How many events lie between the root and this one, and one more; 0 for a root. */
  readonly chainDepth: number;
  /** The run that published it, if one did. */
  readonly causeRunId: string | null;
  readonly replayOf: string | null;
};

export function toInfo(row: EventRow): EventInfo {
  return {
    id: row.id,
    tenant: row.tenant_id,
    topic: row.topic,
    priority: row.priority,
    key: row.key,
    headers: row.headers === null ? {} : (JSON.parse(row.headers) as Record<string, string>),
    publishedAt: row.published_at,
    availableAt: row.available_at,
    rootEventId: row.root_event_id,
    parentEventId: row.parent_event_id,
    chainDepth: row.chain_depth,
    causeRunId: row.cause_run_id,
    replayOf: row.replay_of,
  };
}
