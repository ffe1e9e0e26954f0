// Replay: what was said is said again, as a new event with a beginning of its own.
import { currentCause } from "../core/cause.ts";
import { DaybookError } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { EventRow } from "./event.ts";
import type { ListenerRow } from "./listener.ts";
import { insertEvent, newEvent, type Published } from "./publish.ts";
import { whichEvents, type EventFilter } from "./read-event.ts";
import { matchesTopic } from "./topic.ts";

export type ReplayFilter = Pick<EventFilter, "topic" | "since" | "until">;

export type ReplayOptions = {
  /** Only this listener hears it; default every one that listens now. */
  readonly listener?: string;
  /** Reads only, and says how many there are. */
  readonly dryRun?: boolean;
};

export type Replayed = {
  readonly count: number;
  /** The new events, in the order of the old ones; empty after a dry run. */
  readonly events: readonly Published[];
};

/** One event by its id, or all of a filter, the oldest first, in slices of their own transactions. */
export async function replay(
  store: Store,
  tenant: string,
  which: string | ReplayFilter,
  options: ReplayOptions = {},
): Promise<Replayed> {
  refuseUnknown(options, ["listener", "dryRun"], "replay");
  const ids = typeof which === "string" ? [which] : await findIds(store, tenant, which);
  if (typeof which === "string") await mustExist(store, tenant, which);
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

async function mustExist(store: Store, tenant: string, id: string): Promise<void> {
  const [row] = await store.read(sql`select seq from daybook_event where tenant_id = ${tenant} and id = ${id}`);
  if (row === undefined) throw new DaybookError("not_found", `there is no event ${id}`, { details: { id } });
}

async function replaySlice(tx: Tx, ids: readonly string[], listener: string | undefined): Promise<Published[]> {
  const only = listener === undefined ? undefined : [await liveListener(tx, listener)];
  const rows = await tx.all<EventRow>(
    sql`select * from daybook_event where tenant_id = ${tx.tenant} and id ${anyOf("text", ids)} order by seq`,
  );
  const made: Published[] = [];
  for (const { topic, payload, priority, key, headers, id } of rows) {
    const prepared = {
      ...{ topic, payload, priority, key, headers, id: null, dedupeKey: null, dedupeWindowMs: null },
      ...{ at: null, delayMs: 0, cause: currentCause() },
    };
    made.push(await insertEvent(tx, newEvent(tx, tx.tenant, prepared, undefined, id), only));
  }
  return made;
}

// One that still catches up would get the new event a second time, when it comes to it.
async function liveListener(tx: Tx, name: string): Promise<ListenerRow> {
  const row = await tx.get<ListenerRow>(
    sql`select * from daybook_listener where tenant_id = ${tx.tenant} and name = ${name} and state <> 'removed'`,
  );
  if (row?.state === "live") return row;
  if (row === undefined) throw new DaybookError("not_found", `there is no listener "${name}"`, { details: { name } });
  throw new DaybookError("conflict", `listener "${name}" still catches up: replay to it when it is live`, {
    details: { name, state: row.state },
  });
}
