// Kills a process that writes, again and again, and looks each time at what it left.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { openStore } from "../../src/storage/open-store.ts";
import { sql } from "../../src/storage/sql.ts";
import { startChild, type Child } from "../support/child-process.ts";
import { pairMigrations, readPairs } from "./pair.ts";

const writers = 24;

/** How many acknowledgements to wait for: each round ends at another moment of its groups. */
function patience(round: number): number {
  return 1 + ((round * 37) % 151);
}

/** `kill` ends whatever is to be ended, once the child has written for a while. */
export async function killRounds(
  t: TestContext,
  options: { readonly url: string; readonly rounds: number; kill?(child: Child): Promise<void> },
): Promise<void> {
  const { url, rounds, kill } = options;
  const acknowledged = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    const child = startChild(t, "fill", [url, `round${String(round).padStart(3, "0")}`, String(writers)]);
    await child.saidLines(patience(round));
    await kill?.(child);
    child.kill();
    const { signal, stderr } = await child.ended;
    assert.equal(signal, "SIGKILL", stderr);
    for (const id of child.lines) acknowledged.add(id);

    await assertWhole(url, acknowledged);
  }
  t.diagnostic(`${acknowledged.size} units were acknowledged in ${rounds} rounds, and all are there`);
}

/** The book opens, is not damaged, holds every acknowledged unit and no half one. Returns what it holds. */
export async function assertWhole(url: string, acknowledged: ReadonlySet<string>): Promise<string[]> {
  const store = await openStore(url, pairMigrations, { migrate: false });
  try {
    const present = await readPairs(store);
    const kept = new Set(present);
    assert.deepEqual(
      [...acknowledged].filter((id) => !kept.has(id)),
      [],
      "acknowledged units were lost",
    );
    if (store.dialect === "sqlite") {
      const integrity = await store.readLong(sql`select integrity_check from pragma_integrity_check()`);
      assert.deepEqual(integrity, [{ integrity_check: "ok" }]);
    }
    return present;
  } finally {
    await store.close();
  }
}
