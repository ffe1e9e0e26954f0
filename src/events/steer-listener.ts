// What people do with a listener: rewind it, let it skip what waits, remove it.
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { cancelUnstarted } from "../jobs/cancel.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Ports } from "../jobs/kind.ts";
import { lockJobs } from "../jobs/lock-order.ts";
import { beginCatchUp } from "./catch-up.ts";
import type { StartFrom } from "./define.ts";
import { closeListeners, deliveryName, lastSeq, stampListeners, type ListenerRow } from "./listener.ts";
import { positionOf } from "./register.ts";

export async function findListener(tx: Tx, name: string): Promise<ListenerRow> {
  const row = await tx.get<ListenerRow>(sql`select * from daybook_listener
    where tenant_id = ${tx.tenant} and name = ${name} and state <> 'removed'`);
  if (row !== undefined) return row;
  throw new DaybookError("not_found", `there is no listener "${name}"`, { details: { name } });
}

/** Delivers everything from a position on once more. A listener that is catching up can only go back to the beginning: a later
 *  position could lie beyond events that it has not reached yet. */
export async function rewindListener(tx: Tx, name: string, to: Exclude<StartFrom, "now">): Promise<void> {
  await closeListeners(tx);
  const row = await findListener(tx, name);
  if (row.state === "catching_up" && to !== "beginning") {
    throw new DaybookError(
      "conflict",
      `listener "${name}" still catches up: wait until it is live, or rewind it to the beginning`,
      {
        details: { name },
      },
    );
  }
  const position =
    to === "beginning" ? { starts_at: null, starts_seq: 0 } : await positionOf(tx, to, `the rewind of "${name}"`);
  const last = await lastSeq(tx, tx.tenant);
  await tx.run(sql`update daybook_listener set state = 'catching_up', heard_seq = ${position.starts_seq}, heard_to = ${last},
      starts_at = ${position.starts_at}, updated_at = ${tx.now}
    where seq = ${row.seq}`);
  await stampListeners(tx);
  await beginCatchUp(tx, { ...row, state: "catching_up" });
}

export type SkipTo = "now" | Exclude<StartFrom, string>;

/** Cancels the deliveries that wait, up to a position. Running deliveries go on, and dead letters stay. */
export async function skipListener(
  engine: Engine,
  tenant: string,
  name: string,
  to: SkipTo = "now",
): Promise<{ skipped: number }> {
  const { store } = engine;
  const bound = await store.write((tx) => boundOf(tx, name, to), { tenant });
  let skipped = 0;
  for (let after = 0; ;) {
    const slice = await store.write((tx) => skipSlice(tx, engine, { name, after, bound }), { tenant });
    skipped += slice.cancelled;
    if (slice.last === undefined) return { skipped };
    after = slice.last;
  }
}

type Bound = { readonly seq: number; readonly at: number | null };

async function boundOf(tx: Tx, name: string, to: SkipTo): Promise<Bound> {
  await closeListeners(tx);
  const row = await findListener(tx, name);
  const last = await lastSeq(tx, tx.tenant);
  if (to === "now") {
    // Events that it has not reached yet are skipped too.
    if (row.state === "catching_up") {
      await tx.run(
        sql`update daybook_listener set state = 'live', heard_seq = ${last}, heard_to = null where seq = ${row.seq}`,
      );
      await stampListeners(tx);
    }
    return { seq: last, at: null };
  }
  if (row.state === "catching_up") {
    throw new DaybookError("conflict", `listener "${name}" still catches up: skip to "now", or wait until it is live`, {
      details: { name },
    });
  }
  if (typeof to !== "object") throw invalid('skip to "now", { time } or { event: id }');
  const { starts_seq: seq, starts_at: at } = await positionOf(tx, to, `the skip of "${name}"`);
  return at === null ? { seq, at } : { seq: last, at };
}

async function skipSlice(
  tx: Tx,
  ports: Ports,
  { name, after, bound }: { readonly name: string; readonly after: number; readonly bound: Bound },
): Promise<{ cancelled: number; last: number | undefined }> {
  const rows = await tx.all<{ id: string; line: number; status: string; seq: number; published_at: number }>(sql`select
      job.id, line.seq as line, line.status, line.kind_seq as seq, event.published_at
    from daybook_line line join daybook_job job on job.seq = line.seq join daybook_event event on event.seq = line.kind_seq
    where line.kind = 'delivery' and line.kind_seq > ${after} and line.kind_seq <= ${bound.seq} and line.kind is not null
      and job.tenant_id = ${tx.tenant} and job.name = ${deliveryName(name)}
    order by line.kind_seq limit ${limits.claimParkedMax}`);
  const skipped = rows.filter(({ status, published_at: at }) => {
    return status !== "running" && (bound.at === null || at < bound.at);
  });
  let cancelled = 0;
  // All at once: one by one they would be locked in the order of their events (lock-order.ts).
  await lockJobs(
    tx,
    skipped.map(({ line: seq }) => ({ seq })),
  );
  for (const { id } of skipped) if (await cancelUnstarted(tx, ports, id)) cancelled++;
  return { cancelled, last: rows.at(-1)?.seq };
}

export type RemoveOptions = {
  /** `"all"`: removes a listener for all tenants from each of them, and tenants that come later do not get it. */
  readonly tenants?: "all";
};

/** Ends a listener. Its waiting deliveries stay, and so does its name in the history. */
export async function removeListener(tx: Tx, name: string, options: RemoveOptions = {}): Promise<void> {
  refuseUnknown(options, ["tenants"], "listeners.remove");
  if (options.tenants !== undefined && options.tenants !== "all") {
    throw invalid(`tenants ${quote(options.tenants)} is not "all": leave it out, or say "all"`);
  }
  await closeListeners(tx);
  const row = await findListener(tx, name);
  const theirs = options.tenants === "all" ? sql`or (for_all = 1 and name = ${name} and state <> 'removed')` : sql``;
  await tx.run(sql`update daybook_listener set state = 'removed', removed_at = ${tx.now}, heard_to = null, updated_at = ${tx.now}
    where seq = ${row.seq} ${theirs}`);
  await stampListeners(tx);
}
