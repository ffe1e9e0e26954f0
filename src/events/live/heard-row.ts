import type { EventRow } from "../event.ts";
import type { LiveEvent } from "./live-event.ts";

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
