// A request with an idempotency key is done once, and its answer is given again.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manualClock, type Book } from "../../src/index.ts";
import { openReplies, type Begun } from "../../src/access/replies.ts";
import { limits } from "../../src/core/limits.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { backends, openTest } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import { readSession, until } from "../support/session-row.ts";

const key = { tenant: "acme", tokenId: "abc", key: "once", route: "POST /jobs", bodyHash: "h1" };
const reply = { status: 201, headers: { location: "/jobs/1" }, body: '{"id":"1"}' };

function idOf(begun: Begun): string {
  assert.equal(begun.state, "fresh");
  return begun.state === "fresh" ? begun.id : "";
}

for (const backend of backends) {
  describe(`kept replies on ${backend}`, { concurrency: true }, () => {
    test("of many that begin at once, in two processes, one is fresh", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const ask = (of: Book, n: number): Promise<Begun> => of.access.replies.begin({ ...key, key: `once-${n % 5}` });

      const begun = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(n % 2 === 0 ? book : other, n)));

      assert.equal(begun.filter(({ state }) => state === "fresh").length, 5);
      assert.equal(begun.filter(({ state }) => state === "busy").length, 95);
    });

    test("once it is finished, the same request has the same answer, and another one is told", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const { replies } = book.access;
      const id = idOf(await replies.begin(key));
      const under = await replies.begin(key);
      await replies.finish(id, reply);

      assert.deepEqual(under, { state: "busy" });
      assert.deepEqual(await other.access.replies.begin(key), { state: "done", ...reply });
      assert.deepEqual(await replies.begin({ ...key, bodyHash: "h2" }), { state: "other" });
      assert.deepEqual(await replies.begin({ ...key, route: "POST /calls" }), { state: "other" });
      for (const apart of [{ tenant: "b" }, { tokenId: "b" }, { key: "b" }]) {
        assert.equal((await replies.begin({ ...key, ...apart })).state, "fresh", JSON.stringify(apart));
      }
    });

    test("a request that failed before it did anything frees its key, and that alone", async (t) => {
      const { book } = await openTest(t, backend);
      const { replies } = book.access;
      const first = idOf(await replies.begin(key));
      await replies.drop(first);
      const second = idOf(await replies.begin({ ...key, bodyHash: "h2" }));

      await replies.drop(first);
      await replies.finish(first, reply);

      assert.deepEqual(await replies.begin({ ...key, bodyHash: "h2" }), { state: "busy" });
      await replies.finish(second, reply);
      await replies.drop(second);
      assert.equal((await replies.begin({ ...key, bodyHash: "h2" })).state, "done");
    });

    test("an answer is kept for a day, and a request that was given up is free after an hour", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });
      const { replies } = book.access;
      await replies.finish(idOf(await replies.begin(key)), reply);
      const stuck = { ...key, key: "stuck" };
      const abandoned = idOf(await replies.begin(stuck));

      clock.step(limits.replyBegunMs - 1);
      const early = await replies.begin(stuck);
      clock.step(1);
      const freed = await replies.begin(stuck);
      clock.step(limits.replyMs - limits.replyBegunMs - 1);
      const kept = await replies.begin({ ...key });
      clock.step(1);
      const over = await replies.begin({ ...key, bodyHash: "h2" });
      await replies.finish(abandoned, reply);

      assert.deepEqual([early.state, freed.state, kept.state, over.state], ["busy", "fresh", "done", "fresh"]);
    });

    test("what a process had begun that died is free for one of those that ask again", async (t) => {
      const { book, url } = await openTest(t, backend);
      const dying = await startProcess(t, { url });
      const { seq } = await readSession(book, dying.sessionId);
      const { store } = roomsOf(book);
      const theirs = openReplies(store, () => seq);
      await theirs.begin(key);
      const done = { ...key, key: "done" };
      await theirs.finish(idOf(await theirs.begin(done)), reply);
      assert.deepEqual(await book.access.replies.begin(key), { state: "busy" });

      await dying.kill();
      await until("its session has ended", async () => {
        await book.sessions.look();
        return (await readSession(book, dying.sessionId)).status === "running" ? undefined : true;
      });
      const begun = await Promise.all(Array.from({ length: 10 }, () => book.access.replies.begin(key)));

      assert.equal(begun.filter(({ state }) => state === "fresh").length, 1);
      assert.equal(begun.filter(({ state }) => state === "busy").length, 9);
      assert.equal((await book.access.replies.begin(done)).state, "done");
    });

    test("a key that is none is refused", async (t) => {
      const { book } = await openTest(t, backend);

      for (const bad of ["", "a b", "ä", "a\n", "x".repeat(256), "\0"]) {
        await assert.rejects(book.access.replies.begin({ ...key, key: bad }), { code: "invalid" });
      }
      assert.equal((await book.access.replies.begin({ ...key, key: "x".repeat(255) })).state, "fresh");
    });
  });
}
