// Places of a lane are changed by one transaction at a time.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";

/** Holds the lines of these lanes until the transaction ends. SQLite's only writer needs none of it. On PostgreSQL the row
 *  is written, not only locked: a serializable transaction that began before another's move then runs again instead of
 *  deciding by what it saw. An update that leaves the keys as they are does not hold up those who enqueue; a
 *  `for update` would. */
export async function holdLines(tx: Tx, lanes: readonly number[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  const inOrder = [...new Set(lanes)].toSorted((a, b) => a - b);
  for (const lane of inOrder)
    await tx.run(sql`update daybook_lane as lane set paused_at = paused_at where seq = ${lane}`);
}
