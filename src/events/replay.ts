// Replay publishes a past event once more, as a new event that begins a chain of its own.
import { currentCause } from "../core/cause.ts";
import { DaybookError } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { EventRow } from "./event.ts";
import { findListener, type ListenerRow } from "./listener.ts";
import { insertEvent, newEvent, type Published } from "./publish.ts";
import { findEvent, whichEvents, type EventFilter } from "./read-event.ts";
import { matchesTopic } from "./topic.ts";

export type ReplayFilter = Pick<EventFilter, "topic" | "since" | "until">;

export type ReplayOptions = {
  /** Only this listener hears it; default every listener that is live now. */
  readonly listener?: string;
  /** Counts the events and publishes nothing. */
  readonly dryRun?: boolean;
};

export type Replayed = {
  readonly count: number;
  /** The new events, in the order of the old ones; empty after a dry run. */
  readonly events: readonly Published[];
};

/** Replays one event by its id, or all events of a filter, oldest first, one transaction per slice. */
export async function replay(
  store: Store,
  tenant: string,
  which: string | ReplayFilter,
  options: ReplayOptions = {},
): Promise<Replayed> {
  refuseUnknown(options, ["listener", "dryRun"], "replay");
  const ids = typeof which === "string" ? [which] : await findIds(store, tenant, which);
  if (typeof which === "string") await findEvent(store, tenant, which);
  if (options.dryRun === true) return { count: ids.length, events: [] };
  const events: Published[] = [];
  for (let from = 0; from < ids.length; from += sliceMax) {
    const slice = ids.slice(from, from + sliceMax);
    events.push(...(await store.write((tx) => replaySlice(tx, slice, options.listener), { tenant })));
  }
  return { count: events.length, events };
}

const sliceMax = 100;

async function findIds(store: Store, tenant: string, filter: ReplayFilter): Promise<string[]> {
  refuseUnknown(filter, ["topic", "since", "until"], "replay");
  const rows = await store.readHeavy<{ id: string; topic: string }>(
    sql`select id, topic from daybook_event event where ${whichEvents(tenant, filter)} order by seq`,
  );
  return rows
    .filter(({ topic }) => filter.topic === undefined || matchesTopic(filter.topic, topic))
    .map(({ id }) => id);
}

async function replaySlice(tx: Tx, ids: readonly string[], listener: string | undefined): Promise<Published[]> {
  const only = listener === undefined ? undefined : [await liveListener(tx, listener)];
  const rows = await tx.all<EventRow>(
    sql`select * from daybook_event where tenant_id = ${tx.tenant} and id ${anyOf("text", ids)} order by seq`,
  );
  const made: Published[] = [];
  for (const { topic, payload, priority, key, headers, id } of rows) {
    const again = { topic, payload, priority, key, headers, cause: currentCause(), replayOf: id };
    made.push(await insertEvent(tx, newEvent(tx, tx.tenant, again, undefined), only));
  }
  return made;
}

// A listener that is still catching up would get the new event twice: now, and when it catches up with it.
async function liveListener(tx: Tx, name: string): Promise<ListenerRow> {
  const row = await findListener(tx, name);
  if (row.state === "live") return row;
  throw new DaybookError("conflict", `listener "${name}" still catches up: replay to it when it is live`, {
    details: { name, state: row.state },
  });
}
