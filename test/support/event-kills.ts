// Processes that listen, and are killed while they do.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/id.ts";
import { open, seededRandom, type Book, type EventRecord } from "../../src/index.ts";
import { startChild, type Child } from "./child-process.ts";
import { cleanup, testFolder, bookUrl, type Backend } from "./open-test.ts";

type Scene = { book: Book; ledger: string; start(): Promise<Child> };

export async function openScene(t: TestContext, backend: Backend): Promise<Scene> {
  const url = await bookUrl(t, backend);
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

export const heard = (ledger: string): string[][] =>
  readFileSync(ledger, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "));

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await systemClock.sleep(20);
}

export const lag = async (book: Book): Promise<number> =>
  (await book.listeners.list()).reduce((sum, { lag: { events } }) => sum + events, 0);

const perKill = 5;

/** Publishes while listeners are killed: each event is heard by all, and done once in the record, by each of them. */
export async function killWhileHearing(t: TestContext, backend: Backend, kills: number): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const { book, ledger, start } = await openScene(t, backend);
  const children = [await start(), await start()];
  const count = kills * perKill;

  for (let kill = 0; kill < kills; kill++) {
    for (let n = kill * perKill; n < (kill + 1) * perKill; n++) await book.events.publish("talk.said", { n });
    await systemClock.sleep(random() * 60);
    const victim = kill % 2;
    children[victim]?.kill();
    children[victim] = await start();
  }
  await until(async () => (await lag(book)) === 0);

  const items = await everything(book);
  assert.equal(items.length, count);
  const done = items.flatMap(({ payload, deliveries }) =>
    deliveries.map((each) => `${each.listener} ${(payload as { n: number }).n} ${each.status}`),
  );
  const names = ["one", "three", "two"];
  const all = Array.from({ length: count }, (_, n) => names.map((name) => `${name} ${n}`)).flat();
  assert.deepEqual(new Set(done), new Set(all.map((each) => `${each} acked`)));
  assert.equal(done.length, count * names.length);
  const pairs = new Set(heard(ledger).map(([name, n]) => `${name} ${n}`));
  assert.deepEqual(pairs, new Set(all));
  const twice = await book.read(
    (tx) => tx.sql`select kind_seq, name from daybook_job_now where kind = 'delivery' and status = 'completed'
      group by kind_seq, name having count(*) > 1`,
  );
  assert.deepEqual(twice, []);
  assert.deepEqual(await book.doctor(), []);
  t.diagnostic(`${heard(ledger).length} starts for ${done.length} deliveries`);
}

async function everything(book: Book): Promise<EventRecord[]> {
  const all: EventRecord[] = [];
  for (let after: string | null | undefined; after !== null;) {
    const page = await book.events.list({ limit: 500, ...(after === undefined ? {} : { after }) });
    all.push(...page.items);
    after = page.next;
  }
  return all;
}
