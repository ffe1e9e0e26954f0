// The line of a queue as its reader sees it is the order in which a worker takes it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book, type JobInLine } from "../../src/index.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const work = job<{ n: number }>("work", { attempts: 2, backoff: ["1h"], run: () => undefined });
const use = [work];
const some = (count: number): { n: number }[] => Array.from({ length: count }, (_, n) => ({ n }));

/** Everybody in line, read in pages of three. */
async function wholeLine({ queues }: Pick<Book, "queues">, queue: string, limit = 3): Promise<JobInLine[]> {
  const all: JobInLine[] = [];
  for (let after: string | null = ""; after !== null;) {
    const { items, next } = await queues.line(queue, { limit, ...(after === "" ? {} : { after }) });
    all.push(...items);
    after = next;
  }
  return all;
}

for (const backend of backends) {
  describe(backend, () => {
    test("after moves, priorities and cancels a worker of one place runs the line as it was shown", async (t) => {
      const ran: string[] = [];
      const tells = job<{ n: number }>("tells", { run: (_params, { job: { id } }) => void ran.push(id) });
      const { book } = await openTest(t, backend, { use: [tells], clock: manualClock() });
      const made = (await book.jobs.enqueueMany(tells, some(8))).map(({ id }) => id);
      const [a = "", b = "", c = "", d = "", e = ""] = made;
      await book.tenant("acme").jobs.enqueue("tells", { n: 0 });
      const high = (await book.jobs.enqueueMany(tells, some(3), { priority: 5 })).map(({ id }) => id);
      const low = await book.jobs.enqueue(tells, { n: 0 }, { priority: -5 });
      await book.jobs.enqueue(tells, { n: 0 }, { in: "1h", priority: 9 });
      await book.jobs.enqueue(tells, { n: 0 }, { queue: "other", priority: 9 });
      await book.jobs.move(e, { before: b });
      await book.jobs.move(a, "last");
      await book.jobs.move(high[2] ?? "", "first");
      await book.jobs.prioritise(c, 5);
      await book.jobs.cancel(d);

      const line = await wholeLine(book, "default");
      const worker = await book.startWorker({ concurrency: 1, queues: ["default"] });
      await worker.idle();

      assert.deepEqual(
        line.map(({ id }) => id),
        [high[2], high[0], high[1], c, e, b, ...made.slice(5), a, low.id],
      );
      assert.deepEqual(
        ran.filter((id) => line.some((each) => each.id === id)),
        line.map(({ id }) => id),
      );
      assert.deepEqual(
        line.map(({ place }) => place),
        line.map((_, index) => index + 1),
      );
      assert.deepEqual(await wholeLine(book, "default"), []);
    });

    test("a lost job stands where it stood, and one that waits is not in line until its time", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [a = "", b = "", c = ""] = (await at.jobs.enqueueMany(work, some(3))).map(({ id }) => id);
      const urgent = await at.jobs.enqueue(work, { n: 9 }, { priority: 1 });
      const [first, second] = await at.claim(2);
      assert.deepEqual([first?.id, second?.id], [urgent.id, a]);
      assert.ok(first && second);
      await at.end(first, { status: "error" });
      await at.end(second, { status: "lost" });

      const shown = (await wholeLine(at, "default")).map(({ id }) => id);
      const retried = (await at.jobs.get(a)).retriedBy;
      assert.deepEqual(shown, [retried, b, c]);
      const [one] = (await at.queues.line("default", { limit: 1 })).items;
      assert.deepEqual(Object.keys(one ?? {}), ["place", "id", "name", "priority", "position", "createdAt"]);
      const { name, priority, position, createdAt } = await at.jobs.get(retried ?? "");
      assert.deepEqual(one, { place: 1, id: retried, name, priority, position, createdAt });

      at.clock.step(3_600_000);
      await at.turn(0, at.claimer(), { lookForDue: true });
      const later = (await wholeLine(at, "default")).map(({ id }) => id);
      assert.deepEqual(later, [(await at.jobs.get(urgent.id)).retriedBy, ...shown]);
      const claimed: string[] = [];
      for (let [next] = await at.claim(1); next !== undefined; [next] = await at.claim(1)) claimed.push(next.id);
      assert.deepEqual(claimed, later);
    });

    test("a page that follows counts its places at its own moment", async (t) => {
      const at = await openEngine(t, backend, { use });
      const ids = (await at.jobs.enqueueMany(work, some(6))).map(({ id }) => id);
      const { items, next } = await at.queues.line("default", { limit: 2 });
      await at.claim(1);

      const second = await at.queues.line("default", { limit: 2, after: next ?? "" });

      const placesOf = (page: readonly JobInLine[]): unknown[] => page.map(({ id, place }) => [ids.indexOf(id), place]);
      assert.deepEqual(placesOf(items), [
        [0, 1],
        [1, 2],
      ]);
      assert.deepEqual(placesOf(second.items), [
        [2, 2],
        [3, 3],
      ]);
      for (const { id, place } of second.items) assert.equal((await at.jobs.place(id))?.place, place);
    });

    test("a queue that nobody used has nobody in line, and what is not a queue, page or cursor is refused", async (t) => {
      const at = await openEngine(t, backend, { use });
      assert.deepEqual(await at.queues.line("nobody"), { items: [], next: null });
      const wrong: [queue: string, options: object, message: RegExp][] = [
        ["", {}, /queue ""/],
        ["default", { limit: 0 }, /limit 0 is not a whole number from 1 to 500/],
        ["default", { limit: 501 }, /limit 501/],
        ["default", { after: "x" }, /"x" is not a cursor: give "next" of the page before/],
        ["default", { after: "WzEsMl0" }, /is not a cursor/],
        ["default", { befor: 1 }, /unknown option "befor" for the line of a queue/],
      ];
      for (const [queue, options, message] of wrong) {
        await assert.rejects(at.queues.line(queue, options), { code: "invalid", message });
      }
    });
  });
}
