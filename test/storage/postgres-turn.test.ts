// Who competes for the same thing loses once at most: it then runs when it is its turn, and so do those who come a moment later.
import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../src/index.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Tx } from "../../src/storage/store.ts";
import { openTestStore } from "../support/open-test.ts";

/** Whether the transaction holds the lock of a turn. */
async function hasTurn(tx: Tx): Promise<boolean> {
  const row = await tx.get<{ n: number }>(sql`select count(*) as n from pg_locks
    where locktype = 'advisory' and mode = 'ExclusiveLock' and granted and pid = pg_backend_pid()`);
  return row?.n === 1;
}

test("a unit that lost has its turn, whoever comes a moment later has it at once, and later nobody does", async (t) => {
  const clock = manualClock();
  const { store } = await openTestStore(t, "postgres", { waitClock: clock });
  await store.write((tx) => tx.run(sql`create table counter (n bigint not null)`));
  await store.write((tx) => tx.run(sql`insert into counter (n) values (0)`));
  const add = (tx: Tx): unknown => tx.run(sql`update counter set n = n + 1`);
  const turns: boolean[] = [];
  const compete = (meanwhile?: () => Promise<unknown>): Promise<unknown> =>
    store.write(
      async (tx) => {
        tx.compete("the counter");
        turns.push(await hasTurn(tx));
        if (turns.length === 1) await meanwhile?.();
        await add(tx);
      },
      { by: "user" },
    );

  await compete(() => store.write(add));
  await compete();
  await store.write(async (tx) => void turns.push(await hasTurn(tx)), { by: "user" });
  await clock.advance(1000);
  await compete();

  assert.deepEqual(turns, [false, true, true, false, false]);
  assert.deepEqual(await store.read(sql`select n from counter`), [{ n: 4 }]);
});
