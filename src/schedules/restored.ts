// A copy of a book must not do again what the original may have done since: what was due before somebody works on the copy
// is passed by, once, and what is due after that is fired as ever.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { skipLocked } from "../storage/word.ts";
import { nextFireAt, readTiming, type ScheduleRow } from "./schedule.ts";
import { insertSkips } from "./write-decisions.ts";

const note = "the book was restored from a backup";

/** Passes by what was due on restored schedules, some hundred of them; true when there may be more. */
export async function passByRestored(tx: Tx): Promise<boolean> {
  const restored = await tx.all<ScheduleRow>(sql`select * from daybook_schedule where restored = 1
    order by seq limit ${limits.schedulesPerTickMax} ${skipLocked}`);
  for (const row of restored) {
    const timing = readTiming(row);
    // What is paused is passed by when it is resumed; what cannot be read pauses when it is due.
    if (row.paused_at !== null || "unreadable" in timing) {
      await tx.run(sql`update daybook_schedule set restored = 0 where seq = ${row.seq}`);
      continue;
    }
    await insertSkips(tx, row, timing, { until: tx.now, note });
    const next = { ...row, cursor_at: Math.max(row.cursor_at, tx.now) };
    await tx.run(sql`update daybook_schedule set restored = 0, cursor_at = ${next.cursor_at},
      next_at = ${nextFireAt(next, timing)} where seq = ${row.seq}`);
  }
  return restored.length >= limits.schedulesPerTickMax;
}
