// The schedules of a copied book do not fire until somebody releases them. Slots before the release are passed by, because the
// original may have fired them; later slots fire as usual.
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { nextFireAt, readTiming, schedulesChannel, type ScheduleRow } from "./schedule.ts";
import { insertSkips, passedBy } from "./write-decisions.ts";

/** Run on a copy of the book. */
export const holdSchedules: readonly Sql[] = [
  sql`update daybook_schedule set held = 1, next_at = null where removed_at is null`,
];

export type HeldSchedules = { readonly tenant: string; readonly count: number };

export function countHeldSchedules(store: Store, tenant: string | undefined): Promise<HeldSchedules[]> {
  return store.readHeavy<HeldSchedules>(sql`select tenant_id as tenant, count(*) as count from daybook_schedule
    where held = 1 and removed_at is null ${ofTenant(tenant)} group by 1 order by 1`);
}

function ofTenant(tenant: string | undefined): Sql {
  return tenant === undefined ? sql`` : sql`and tenant_id = ${tenant}`;
}

/** Lets held schedules fire from now on, a few hundred per transaction. Returns how many. */
export async function releaseSchedules(store: Store, tenant: string | undefined): Promise<number> {
  let released = 0;
  for (;;) {
    const slice = await store.write((tx) => releaseSlice(tx, tenant));
    released += slice;
    if (slice < limits.schedulesPerTickMax) return released;
  }
}

async function releaseSlice(tx: Tx, tenant: string | undefined): Promise<number> {
  const held = await tx.all<ScheduleRow>(sql`select * from daybook_schedule where held = 1 and removed_at is null
    ${ofTenant(tenant)} order by seq limit ${limits.schedulesPerTickMax}`);
  for (const row of held) {
    const timing = readTiming(row);
    const free = { ...row, held: 0 };
    // A paused schedule passes by its slots when it is resumed; an unreadable one pauses when it is due.
    if (row.paused_at !== null || "unreadable" in timing) {
      const nextAt = row.paused_at === null ? tx.now : null;
      await tx.run(sql`update daybook_schedule set held = 0, next_at = ${nextAt} where seq = ${row.seq}`);
      continue;
    }
    await insertSkips(tx, row, timing, { until: tx.now, note: passedBy.restored });
    const next = { ...free, cursor_at: Math.max(row.cursor_at, tx.now) };
    await tx.run(sql`update daybook_schedule set held = 0, cursor_at = ${next.cursor_at},
      next_at = ${nextFireAt(next, timing)} where seq = ${row.seq}`);
  }
  if (held.length > 0) tx.wake(schedulesChannel);
  return held.length;
}
