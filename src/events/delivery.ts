// A delivery brings one event to one listener. It is a job, which names the event and does not copy it.
import type { Tx } from "../storage/store.ts";
import type { NewJob } from "../jobs/insert.ts";
import { laneOf } from "../jobs/lane.ts";
import { deliveryKind, type EventRow } from "./event.ts";
import { deliveryName, orderKey, type ListenerRow } from "./listener.ts";

export type Delivered = Pick<
  EventRow,
  "tenant_id" | "seq" | "id" | "priority" | "key" | "available_at" | "delay_ms" | "cause_run_id" | "root_run_id"
>;

/** What a delivery is given as its params. */
export type DeliveryParams = { readonly event: string };

export async function newDelivery(tx: Tx, listener: ListenerRow, event: Delivered): Promise<NewJob> {
  const ordered = listener.ordered === 1 && event.key !== null;
  const waits = event.available_at > tx.now;
  return {
    tenant_id: event.tenant_id,
    id: tx.ids(),
    lane_seq: await laneOf(tx, event.tenant_id, listener.queue),
    name: deliveryName(listener.name),
    status: waits ? "waiting" : "queued",
    waits_for: waits ? "time" : null,
    waits_key: null,
    priority: event.priority,
    created_at: tx.now,
    available_at: Math.max(tx.now, event.available_at),
    delay_ms: waits ? event.delay_ms : null,
    params: `{"event":${JSON.stringify(event.id)}}`,
    attempts: listener.attempts,
    losses_max: listener.losses,
    backoff: listener.backoff,
    timeout_ms: listener.timeout_ms,
    limits: limitsJson(listener.concurrency, ordered),
    limit_key: ordered ? orderKey(listener.name, event.key ?? "") : null,
    cause_run_id: event.cause_run_id,
    root_run_id: event.root_run_id,
    kind: deliveryKind,
    kind_seq: event.seq,
  };
}

// One at a time of a key: it is what order means, and its lock is what order is decided under.
function limitsJson(concurrency: number | null, ordered: boolean): string | null {
  if (concurrency === null && !ordered) return null;
  return JSON.stringify({
    ...(concurrency === null ? {} : { name: concurrency }),
    ...(ordered ? { key: 1 } : {}),
  });
}
