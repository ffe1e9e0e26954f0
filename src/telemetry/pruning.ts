// What retention removed, so that an id that is gone can be accounted for.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";

export type Pruning = {
  readonly tenant: string;
  readonly what: "job" | "event" | "reservation";
  /** What was asked for, as JSON. */
  readonly filter: string;
  readonly removed: number;
  /** When what is gone was made, from the first to the last: whoever asks for an id of that time finds this. */
  readonly made?: readonly number[];
};

export async function notePruning(tx: Tx, { tenant, what, filter, removed, made = [] }: Pruning): Promise<void> {
  // Not Math.min(...made): a chain that was tried for months is one bundle, and so many arguments overflow the stack.
  const ordered = made.toSorted((a, b) => a - b);
  const [first = null, last = null] = [ordered[0], ordered.at(-1)];
  await tx.run(sql`insert into daybook_pruning (tenant_id, pruned_at, what, filter, removed, first_at, last_at)
    values (${tenant}, ${tx.now}, ${what}, ${filter}, ${removed}, ${first}, ${last})`);
}
