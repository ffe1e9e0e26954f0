import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";
import { open, seededRandom, type Book } from "../../src/index.ts";
import { startChild, type Child } from "../support/child-process.ts";
import { backends, cleanup, testFolder, testUrl, type Backend } from "../support/open-test.ts";

type Scene = { book: Book; ledger: string; start(): Promise<Child> };

async function openScene(t: TestContext, backend: Backend): Promise<Scene> {
  const url = await testUrl(t, backend);
  const ledger = join(testFolder(t), "heard");
  writeFileSync(ledger, "");
  const start = async (): Promise<Child> => {
    const child = startChild(t, "hear", [url, ledger]);
    await child.said("working");
    return child;
  };
  const first = await start(); // the listeners are registered before anything is said
  first.kill();
  await first.ended;
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  return { book, ledger, start };
}

const heard = (ledger: string): string[][] =>
  readFileSync(ledger, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "));

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await systemClock.sleep(20);
}

const lag = async (book: Book): Promise<number> =>
  (await book.listeners.list()).reduce((sum, { lag: { events } }) => sum + events, 0);

for (const backend of backends) {
  describe(backend, () => {
    test("100 events for three listeners are all heard and done once in the record, whatever is killed", async (t) => {
      const seed = Math.floor(systemRandom() * 2 ** 32);
      t.diagnostic(`seed ${seed}`);
      const random = seededRandom(seed);
      const { book, ledger, start } = await openScene(t, backend);
      const children = [await start(), await start()];

      for (let kills = 0; kills < 20; kills++) {
        for (let n = kills * 5; n < kills * 5 + 5; n++) await book.events.publish("talk.said", { n });
        await systemClock.sleep(random() * 60);
        const victim = kills % 2;
        children[victim]?.kill();
        children[victim] = await start();
      }
      await until(async () => (await lag(book)) === 0);

      const { items } = await book.events.list({ limit: 100 });
      assert.equal(items.length, 100);
      const done = items.flatMap(({ payload, deliveries }) =>
        deliveries.map((each) => `${each.listener} ${(payload as { n: number }).n} ${each.status}`),
      );
      const names = ["one", "three", "two"];
      const all = Array.from({ length: 100 }, (_, n) => names.map((name) => `${name} ${n}`)).flat();
      assert.deepEqual(new Set(done), new Set(all.map((each) => `${each} acked`)));
      assert.equal(done.length, 300);
      const pairs = new Set(heard(ledger).map(([name, n]) => `${name} ${n}`));
      assert.deepEqual(pairs, new Set(all));
      const twice = await book.read(
        (tx) => tx.sql`select kind_seq, name from job where kind = 'delivery' and status = 'completed'
          group by kind_seq, name having count(*) > 1`,
      );
      assert.deepEqual(twice, []);
      assert.deepEqual(await book.doctor(), []);
      t.diagnostic(`${heard(ledger).length} starts for 300 deliveries`);
    });

    test("a handler that kills its process is a dead letter after its losses, and takes no neighbour with it", async (t) => {
      const { book, ledger, start } = await openScene(t, backend);
      for (let n = 0; n < 10; n++) await book.events.publish("talk.said", { n });
      await book.events.publish("poison.take", null);
      for (let n = 10; n < 20; n++) await book.events.publish("talk.said", { n });

      let deaths = 0;
      const isOver = async (): Promise<boolean> =>
        (await lag(book)) === 0 && (await book.deadLetters.list()).items.length > 0;
      while (!(await isOver())) {
        const child = await start().catch(() => undefined);
        if (child === undefined) continue;
        let gone = false;
        void child.ended.then(() => (gone = true));
        await until(async () => gone || (await isOver()));
        if (gone) deaths++;
      }

      const { items } = await book.deadLetters.list();
      assert.deepEqual(
        items.map((letter) => [letter.listener, letter.error.type, letter.status]),
        [["poison", "SessionLost", "dead"]],
      );
      const told = await book.events.list({ topic: "event.dead_letter" });
      assert.equal(told.items.length, 1);
      // The first of its deaths was shared, so it is not blamed for it: two more, alone, are its allowance.
      assert.equal(heard(ledger).filter(([name]) => name === "poison").length, 3);
      assert.ok(deaths >= 2);
      const said = await book.events.list({ topic: "talk.said", limit: 100 });
      assert.ok(said.items.every(({ status }) => status === "acked"));
      assert.deepEqual(await book.doctor(), []);
    });
  });
}
