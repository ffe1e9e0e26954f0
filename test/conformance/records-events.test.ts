import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { entity, job, listener } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const Lamp = entity("lamp", { schema: z.object({ id: z.string(), on: z.boolean() }), key: "id" });

for (const backend of backends) {
  test(`${backend}: a change of a record is an event of its own commit, for the tenant that made it`, async (t) => {
    const heard: unknown[] = [];
    const watch = listener("watch", { on: "record.lamp.*", run: (payload) => void heard.push(payload) });
    const { book } = await openTest(t, backend, { use: [Lamp, watch] });

    await book.records.put(Lamp, { id: "hall", on: false });
    await book.tenant("other").records.put(Lamp, { id: "hall", on: true });
    await book.records.patch(Lamp, "hall", { on: true });
    await assert.rejects(
      book.write(async (tx) => {
        await tx.records.delete(Lamp, "hall");
        throw new Error("no");
      }),
      /no/,
    );
    await book.records.delete(Lamp, "hall");
    await (await book.startWorker({ concurrency: 1 })).idle();

    const change = { type: "lamp", key: "hall", from: null, to: null, instance: null };
    assert.deepEqual(heard, [
      { ...change, kind: "created", revision: 1, commit: 1, value: { id: "hall", on: false } },
      { ...change, kind: "updated", revision: 2, commit: 2, value: { id: "hall", on: true } },
      { ...change, kind: "deleted", revision: 2, commit: 3, value: { id: "hall", on: true } },
    ]);
  });

  test(`${backend}: the fact of a deletion has the document that it ended, also where the transaction put many before`, async (t) => {
    const heard: unknown[] = [];
    const watch = listener("watch", { on: "record.lamp.deleted", run: (payload) => void heard.push(payload) });
    const { book } = await openTest(t, backend, { use: [Lamp, watch] });
    await book.records.put(Lamp, { id: "hall", on: false });

    await book.write(async (tx) => {
      await tx.records.putMany(Lamp, [
        { id: "hall", on: true },
        { id: "new", on: true },
      ]);
      await tx.records.delete(Lamp, "hall");
    });
    await (await book.startWorker({ concurrency: 1 })).idle();

    const change = { type: "lamp", key: "hall", from: null, to: null, instance: null };
    assert.deepEqual(heard, [{ ...change, kind: "deleted", revision: 1, commit: 2, value: { id: "hall", on: false } }]);
  });

  test(`${backend}: a record, an event, a job and a row of one's own are one transaction`, async (t) => {
    const seen: string[] = [];
    const note = job("note", { run: ({ what }: { what: string }) => void seen.push(`job ${what}`) });
    const hear = listener("hear", { on: "lamp.lit", run: () => void seen.push("event") });
    const { book } = await openTest(t, backend, { use: [Lamp, note, hear] });
    await book.write((tx) => tx.sql`create table mine (id integer primary key)`);
    const worker = await book.startWorker({ concurrency: 1 });
    const all = (fails: boolean): Promise<void> =>
      book.write(async (tx) => {
        await tx.records.put(Lamp, { id: "hall", on: true });
        await tx.events.publish("lamp.lit", {});
        await tx.jobs.enqueue(note, { what: "hall" });
        await tx.sql`insert into mine (id) values (${1})`;
        if (fails) throw new Error("no");
      });

    await assert.rejects(all(true), /no/);
    await worker.idle();
    assert.deepEqual([seen, await book.records.head()], [[], null]);

    await all(false);
    await worker.idle();
    assert.deepEqual(seen.toSorted(), ["event", "job hall"]);
    assert.equal((await book.read((tx) => tx.sql`select id from mine`)).length, 1);
    assert.equal((await book.records.get(Lamp, "hall")).on, true);
  });

  test(`${backend}: a listener that changes the records it listens to stops at the depth limit, and its own work does not fail`, async (t) => {
    let runs = 0;
    const echo = listener("echo", {
      on: "record.lamp.updated",
      run: async (_payload, { book }) => {
        runs++;
        const { on } = await book.records.get(Lamp, "hall");
        await book.records.patch(Lamp, "hall", { on: !on });
      },
    });
    const { book } = await openTest(t, backend, { use: [Lamp, echo] });
    await book.records.put(Lamp, { id: "hall", on: false });
    await book.records.patch(Lamp, "hall", { on: true });
    const worker = await book.startWorker();
    await worker.idle();

    assert.equal(runs, 21);
    assert.deepEqual(await book.deadLetters.list(), { items: [], next: null });
  });
}
