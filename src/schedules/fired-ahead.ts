// What a clock that ran ahead has fired stays fired: those slots are not decided again when their time comes.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { ScheduleRow } from "./schedule.ts";
import { spanOf } from "./timing/slot.ts";
import type { Timing } from "./timing/timing.ts";

/** The timing without the slots after the cursor that a clock which ran ahead has fired. */
export async function undecided(tx: Tx, row: ScheduleRow, timing: Timing): Promise<Timing> {
  if (row.ahead_until === null || row.ahead_until <= row.cursor_at) return timing;
  const fired = await tx.all<{ slot_at: number }>(sql`select slot_at from daybook_decision
    where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq} and slot_at > ${row.cursor_at}
    order by slot_at limit ${limits.bulkRowsMax}`);
  const slots = new Set(fired.map(({ slot_at: at }) => at));
  const next: Timing["next"] = (after) => {
    let slot = timing.next(after);
    while (slot !== null && slots.has(slot.at)) slot = timing.next(slot.at);
    return slot;
  };
  return { ...timing, next, span: (after, until, most) => spanOf(next, after, until, most) };
}
