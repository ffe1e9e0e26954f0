// Commits: found by their actor, time and type, and shown with what they changed; and what doctor finds of them.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { entity, manualClock } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const Note = entity("note", { schema: z.object({ id: z.string(), n: z.number() }), key: "id" });
const Lamp = entity("lamp", { schema: z.object({ id: z.string() }), key: "id" });
const minute = 60_000;

for (const backend of backends) {
  describe(backend, () => {
    test("commits are found by their actor, by their time and by the type that they changed, a page at a time", async (t) => {
      const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
      const { book } = await openTest(t, backend, { use: [Note, Lamp], worker: false, clock });
      const { records } = book;
      const ids = async (filter: Parameters<typeof records.commits>[0]): Promise<number[]> =>
        (await records.commits(filter)).items.map(({ id }) => id);
      const at: number[] = [];
      for (const [n, actor] of ["ada", "bob", "ada", "bob", "ada"].entries()) {
        at.push(clock.now());
        if (n % 2 === 0) await records.put(Note, { id: "n", n }, { actor });
        else await records.put(Lamp, { id: "hall" }, { actor });
        await clock.advance(minute);
      }
      await book.write(async (tx) => {
        await tx.records.put(Note, { id: "n", n: 9 });
        await tx.records.put(Lamp, { id: "hall" });
      });
      await book.tenant("other").records.put(Note, { id: "n", n: 1 }, { actor: "ada" });

      assert.deepEqual(await ids({}), [6, 5, 4, 3, 2, 1]);
      assert.deepEqual(await ids({ actor: "ada" }), [5, 3, 1]);
      assert.deepEqual(await ids({ actor: "nobody" }), []);
      assert.deepEqual(await ids({ type: Note }), [6, 5, 3, 1]);
      assert.deepEqual(await ids({ type: Lamp, actor: "bob" }), [4, 2]);
      assert.deepEqual(await ids({ since: at[1] ?? 0, until: at[3] ?? 0 }), [3, 2]);
      assert.deepEqual(await ids({ since: (at[1] ?? 0) + 1, until: new Date((at[3] ?? 0) + 1) }), [4, 3]);
      assert.deepEqual(await ids({ since: "2026-12-01T00:00:00Z" }), []);
      assert.deepEqual(await ids({ until: "2026-01-01T00:00:00Z" }), []);
      assert.deepEqual(await ids({ until: at[3] ?? 0, type: Note }), [3, 1]);
      const first = await records.commits({ actor: "ada", limit: 2 });
      assert.deepEqual([first.items.map(({ id }) => id), first.next], [[5, 3], 3]);
      assert.deepEqual(await ids({ actor: "ada", limit: 2, before: 3 }), [1]);
      const Unwritten = entity("unwritten", { schema: z.object({ id: z.string() }), key: "id" });
      assert.deepEqual(await ids({ type: Unwritten }), []);
      assert.deepEqual(await book.doctor(), []);
    });

    test("where the clock was set back, commits of a time are found on both sides of that moment", async (t) => {
      const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
      const { book } = await openTest(t, backend, { use: [Note], worker: false, clock });
      const put = (n: number): Promise<unknown> => book.records.put(Note, { id: "n", n });
      for (const n of [1, 2, 3]) {
        await put(n);
        await clock.advance(minute);
      }
      clock.step("-3m");
      for (const n of [4, 5, 6]) {
        await put(n);
        await clock.advance(minute);
      }
      const { items: all } = await book.records.commits();
      const times = all.map(({ at }) => at);
      assert.ok((times[0] ?? 0) < (times[2] ?? 0), "the times go back");

      for (const since of times) {
        for (const until of times) {
          const within = all.filter(({ at }) => at >= since && at < until);
          assert.deepEqual((await book.records.commits({ since, until })).items, within);
          const { items } = await book.records.commits({ since, until, limit: 1, before: 5 });
          assert.deepEqual(items, within.filter(({ id }) => id < 5).slice(0, 1));
        }
      }
    });

    test("a commit is shown with its changes, a page at a time and by type", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note, Lamp], worker: false });
      const { records } = book;
      await records.put(Note, { id: "n-1", n: 0 });
      await book.write(async (tx) => {
        await tx.records.put(Note, { id: "n-2", n: 2 });
        await tx.records.delete(Note, "n-1");
        await tx.records.put(Lamp, { id: "hall" });
      });

      const all = await records.changes(2);
      const first = await records.changes(2, { limit: 2 });
      const rest = await records.changes(2, { limit: 2, after: first.next ?? "" });

      assert.deepEqual(
        all.items.map(({ commit, kind, type, key, before, value }) => [commit, kind, type, key, before, value]),
        [
          [2, "created", "note", "n-2", null, { id: "n-2", n: 2 }],
          [2, "deleted", "note", "n-1", { id: "n-1", n: 0 }, null],
          [2, "created", "lamp", "hall", null, { id: "hall" }],
        ],
      );
      assert.deepEqual([...first.items, ...rest.items], all.items);
      assert.deepEqual([all.next, rest.next], [null, null]);
      assert.deepEqual(
        (await records.changes(2, { type: Lamp })).items.map(({ key }) => key),
        ["hall"],
      );
      await assert.rejects(records.changes(3), { code: "not_found", message: /commit 3 does not exist/ });
      await assert.rejects(records.changes(0), { code: "not_found" });
      await assert.rejects(records.changes(2, { after: "x" }), { code: "invalid", message: /is not a cursor/ });
    });

    test("doctor finds what was broken by hand in commits, and names each without a gap in the text", async (t) => {
      const { book } = await openTest(t, backend, { use: [Note, Lamp], worker: false });
      const { records } = book;
      for (const n of [1, 2, 3]) await records.put(Note, { id: "n-1", n });
      await records.put(Lamp, { id: "hall" });
      await records.delete(Lamp, "hall");
      await records.put(Lamp, { id: "attic" });
      assert.deepEqual(await book.doctor(), []);

      await tamper(book, async (tx) => {
        await tx.sql`update daybook_record_change set revision = 7 where commit_id = 2`;
        await tx.sql`update daybook_record_change set kind = 'created' where commit_id = 3`;
        await tx.sql`delete from daybook_record_version where to_commit = 5`;
        await tx.sql`delete from daybook_record_commit_type where commit_id = 6`;
      });
      const found = await book.doctor();

      assert.deepEqual(
        found.map(({ promise, name, count }) => [promise, name, count]),
        [
          ["R1", "every change agrees with the versions that it made and ended", 5],
          ["R1", "every commit knows the types that it changed", 1],
        ],
      );
      assert.deepEqual(
        found.flatMap((each) => each.found).filter((text) => /null|undefined/.test(text)),
        [],
      );
    });
  });
}
