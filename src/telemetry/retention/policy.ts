// What the book knows of its own retention: how long things stay, as a program said it, and when a process last saw to it.
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";

/** The policy as JSON, which only who wrote it understands; `{}` until a program says one. */
export async function readPolicy(store: Store): Promise<string> {
  const [row] = await store.read<{ policy: string }>(sql`select policy from daybook_retention`);
  return row?.policy ?? "{}";
}

/** It is written only when it changes, because every process that opens the book says it. */
export async function keepPolicy(store: Store, policy: string): Promise<void> {
  if ((await readPolicy(store)) === policy) return;
  await store.write((tx) => tx.run(sql`update daybook_retention set policy = ${policy}`));
}

/** Whether it is time, and nobody else has seen to it. A time to come was written by a clock that was wrong. */
export async function takeTurn(tx: Tx): Promise<boolean> {
  const taken = await tx.run(sql`update daybook_retention set applied_at = ${tx.now} where applied_at is null
    or applied_at <= ${tx.now - limits.retainMs / 2} or applied_at > ${tx.now}`);
  return taken > 0;
}
