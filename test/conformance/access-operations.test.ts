// Operations: what takes long runs here while its caller looks at it from elsewhere.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DaybookError, manualClock, type Book } from "../../src/index.ts";
import { openOperations, type Operation } from "../../src/access/operations.ts";
import { limits } from "../../src/core/limits.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { backends, openTest } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import { readSession, until } from "../support/session-row.ts";

const caller = { tokenId: "abc", name: "ops", tenant: null, role: "admin", queues: null, names: null } as const;
const of = { verb: "jobs cancel-all", tenant: "acme", caller, input: { queue: "mail" } };

function ended(book: Book, { id }: Operation): Promise<Operation> {
  return until(`operation ${id} ends`, async () => {
    const operation = await book.operations.get(id);
    return operation.status === "running" ? undefined : operation;
  });
}

for (const backend of backends) {
  describe(`operations on ${backend}`, { concurrency: true }, () => {
    test("an operation is there before it runs, tells how far it is, and ends with its answer", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { clock });
      const { book: other } = await openTest(t, backend, { url });
      const going = Promise.withResolvers<void>();

      const operation = await book.access.operations.start(of, async ({ progress }) => {
        progress(3, 10);
        await going.promise;
        progress(10, 10);
        return { cancelled: 10 };
      });
      const halfway = await until("its progress is written", async () => {
        const seen = await other.operations.get(operation.id);
        return seen.done === 3 ? seen : undefined;
      });
      going.resolve();
      const end = await ended(book, operation);

      const { id, ...rest } = operation;
      assert.deepEqual(rest, {
        verb: "jobs cancel-all",
        tenant: "acme",
        by: { name: "ops", tokenId: "abc" },
        status: "running",
        done: 0,
        total: null,
        input: { queue: "mail" },
        result: null,
        resultRefused: null,
        error: null,
        startedAt: clock.now(),
        updatedAt: clock.now(),
        finishedAt: null,
        cancelRequestedAt: null,
      });
      assert.deepEqual([halfway.status, halfway.total], ["running", 10]);
      const answer = { status: "completed", done: 10, total: 10, result: { cancelled: 10 }, finishedAt: clock.now() };
      assert.deepEqual(end, { ...operation, ...answer });
      assert.deepEqual((await other.operations.list()).items, [end]);
      await assert.rejects(book.operations.cancel(id), { code: "conflict", message: /has ended \(completed\)/ });
    });

    test("it ends with the error of what it ran, and says nothing of what is inside", async (t) => {
      const { book } = await openTest(t, backend);
      const { start } = book.access.operations;

      const refused = await start(of, async () => Promise.reject(new DaybookError("conflict", "it has ended")));
      const broken = await start({ ...of, caller: null }, async () => Promise.reject(new Error("select * from /etc")));
      const full = await start(of, async () => Promise.reject(new DaybookError("full", "/srv/shop.db: no room")));
      const large = await start(of, async () => ({ text: "x".repeat(limits.jsonBytesMax) }));
      const odd = await start(of, async () => ({ at: new Date(0) }));

      assert.deepEqual((await ended(book, refused)).error, { code: "conflict", message: "it has ended" });
      const { status, error, by } = await ended(book, broken);
      assert.deepEqual([status, error?.code, by], ["failed", "internal", null]);
      assert.ok(!error?.message.includes("select"));
      assert.match(
        (await ended(book, full)).error?.message ?? "",
        /^There is no room left.* Its process has logged more\.$/,
      );
      for (const each of [large, odd]) {
        const { status: how, result, resultRefused } = await ended(book, each);
        assert.deepEqual([how, result], ["completed", null]);
        assert.match(resultRefused ?? "", /the answer/);
      }
    });

    test("it ends when it is cancelled, here or in another process, with what was done until then", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const run = ({ signal }: { readonly signal: AbortSignal }): Promise<unknown> =>
        new Promise((resolve) => signal.addEventListener("abort", () => resolve({ cancelled: 3 })));

      for (const from of [book, other, other.tenant("acme")]) {
        const operation = await book.access.operations.start(of, run);
        const asked = await from.operations.cancel(operation.id);
        const { status, result, cancelRequestedAt } = await ended(book, operation);

        assert.equal(typeof asked.cancelRequestedAt, "number");
        assert.deepEqual([status, result], ["cancelled", { cancelled: 3 }]);
        assert.equal(cancelRequestedAt, asked.cancelRequestedAt);
      }
    });

    test("a tenant's handle sees and cancels its own, and no other", async (t) => {
      const { book } = await openTest(t, backend);
      const { start } = book.access.operations;
      const run = ({ signal }: { readonly signal: AbortSignal }): Promise<unknown> =>
        new Promise((resolve) => signal.addEventListener("abort", () => resolve(null)));
      const [theirs, all] = [await start(of, run), await start({ ...of, tenant: null }, run)];
      const mine = book.tenant("mine");

      for (const { id } of [theirs, all]) {
        await assert.rejects(mine.operations.get(id), { code: "not_found" });
        await assert.rejects(mine.operations.cancel(id), { code: "not_found" });
      }
      assert.deepEqual((await mine.operations.list()).items, []);
      assert.equal((await book.tenant("acme").operations.list()).items.length, 1);
      assert.equal((await book.operations.list({ status: "running" })).items.length, 2);
      assert.equal((await book.operations.list({ verb: "other" })).items.length, 0);
      assert.equal((await book.operations.get(theirs.id)).cancelRequestedAt, null);
      await assert.rejects(book.operations.list({ status: "done" } as never), { code: "invalid" });
    });

    test("closing the book ends what runs, and says so", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const { start } = book.access.operations;
      const stopped = await start(
        of,
        ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped")))),
      );
      const using = await start(of, async ({ signal }) => {
        while (!signal.aborted) await book.jobs.list();
        return book.jobs.list();
      });

      await book.close();

      for (const { id } of [stopped, using]) {
        const { status, error } = await other.operations.get(id);
        assert.deepEqual([status, error?.code], ["failed", "closed"]);
      }
      await assert.rejects(
        start(of, async () => null),
        { code: "closed" },
      );
    });

    test("what ran in a process that died is lost, and keeps its progress", async (t) => {
      const { book, url } = await openTest(t, backend);
      const dying = await startProcess(t, { url });
      const { seq } = await readSession(book, dying.sessionId);
      const theirs = openOperations(roomsOf(book).store, () => seq);
      const never = Promise.withResolvers<unknown>();
      const operation = await theirs.start(of, ({ progress }) => {
        progress(7, null);
        return never.promise;
      });
      await until("its progress is written", async () =>
        (await book.operations.get(operation.id)).done === 7 ? true : undefined,
      );

      await dying.kill();
      const { status, done, finishedAt } = await until("it is lost", async () => {
        await book.sessions.look();
        const seen = await book.operations.get(operation.id);
        return seen.status === "running" ? undefined : seen;
      });

      assert.deepEqual([status, done, typeof finishedAt], ["lost", 7, "number"]);
      // It was only taken for dead: it knows better.
      never.resolve({ all: true });
      await until("its end is written", async () =>
        (await book.operations.get(operation.id)).status === "completed" ? true : undefined,
      );
    });
  });
}
