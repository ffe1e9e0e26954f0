// A test's clock that stands still keeps nothing from being written, read or closed: others are waited for in real time.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { entity, job, listener, manualClock, open, seededRandom } from "../../src/index.ts";
import { startChild } from "../support/child-process.ts";
import { setLimit } from "../support/limit.ts";
import { backends, openTest } from "../support/open-test.ts";

const Note = entity("note", {
  schema: z.object({ id: z.string(), text: z.string() }),
  key: "id",
  indexes: ["text"],
  search: ["text"],
});
const noop = job("noop", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("a book whose records have indexes and a search is written, read and closed", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note], clock: manualClock() });

      for (const id of ["a", "b", "c"]) await book.records.put(Note, { id, text: `note ${id}` });

      assert.equal((await book.records.query(Note).search("note").list()).items.length, 3);
      await book.close();
    });

    test("two books of one place, both on clocks that stand still, write in turn, and both are closed", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [noop], clock: manualClock() });
      const { book: other } = await openTest(t, backend, { use: [noop], url, clock: manualClock() });

      for (let n = 0; n < 20; n++) await Promise.all([book.jobs.enqueue(noop, {}), other.jobs.enqueue(noop, {})]);

      assert.equal((await book.jobs.list({ limit: 100 })).items.length, 40);
      await Promise.all([book.close(), other.close()]);
    });

    test("a worker hears what another process has put in line", async (t) => {
      const done = Promise.withResolvers<void>();
      const heard = job("heard", { run: () => done.resolve() });
      const { book, url } = await openTest(t, backend, { use: [heard], clock: manualClock() });
      const { book: other } = await openTest(t, backend, { use: [heard], url, worker: false, clock: manualClock() });
      await (await book.startWorker()).idle();

      await other.jobs.enqueue(heard, {});

      await done.promise;
    });

    test("a conflict about records is tried again, and a write that waits for something else is undone", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note], clock: manualClock() });
      await book.records.put(Note, { id: "a", text: "first" });
      let tries = 0;
      await book.records.transact(async (tx) => {
        if (++tries === 1) await assert.rejects(tx.records.put(Note, { id: "a", text: "no" }, { ifAbsent: true }));
        if (tries === 1) await tx.records.put(Note, { id: "a", text: "no" }, { ifAbsent: true });
        await tx.records.put(Note, { id: "a", text: "second" });
      });

      await assert.rejects(
        book.write(() => new Promise(() => undefined)),
        { code: "invalid", message: /waited .* for something that is not the book/ },
      );

      assert.equal(tries, 2);
      await book.close();
    });

    test("a handler that ignores its signal does not keep the book from closing", async (t) => {
      setLimit(t, "liveGraceMs", 50);
      const clock = manualClock();
      const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
      const deaf = job("deaf", { run: () => (begun[0].resolve(), new Promise(() => undefined)) });
      const live = listener("live", {
        on: "said",
        live: true,
        run: () => (begun[1].resolve(), new Promise(() => undefined)),
      });
      const { book } = await openTest(t, backend, { use: [deaf, live], clock, worker: { grace: 1 } });
      await book.startWorker();
      await book.jobs.enqueue(deaf, {});
      book.events.emit("said", {});
      await Promise.all(begun.map(({ promise }) => promise));

      await book.close();
    });
  });
}

test("two books in memory are two books, whatever their seeds and clocks", async (t) => {
  const same = () => ({ use: [noop], clock: manualClock(), random: seededRandom(1) });
  const [one, two] = [await open(":memory:", same()), await open(":memory:", same())];
  t.after(() => Promise.all([one.close(), two.close()]));

  const { id } = await one.jobs.enqueue(noop, {});

  assert.deepEqual((await two.jobs.list()).items, []);
  assert.equal((await two.jobs.enqueue(noop, {})).id, id);
});

test("a file that another process holds is waited for", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { use: [noop], clock: manualClock() });
  const holder = startChild(t, "hold", [url]);
  await holder.said("held");

  const writes = [book.jobs.enqueue(noop, {}), book.jobs.enqueue(noop, {})];
  holder.tell("let go");
  await Promise.all(writes);
  await book.jobs.enqueue(noop, {});
  await book.close();
});
