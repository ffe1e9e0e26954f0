// Many at once at one line: on PostgreSQL they are as many connections, and places must be given out one by one.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDaybookError, job, type UserTx } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { assertInvariants } from "./model.ts";
import { openEngine } from "./open-engine.ts";

const work = job("work", { run: (_params: { n: number }) => undefined });
const use = [work];
const params = (count: number): { n: number }[] => Array.from({ length: count }, (_, n) => ({ n }));

for (const backend of backends) {
  describe(backend, () => {
    test("moves, enqueues, claims and shutdowns at once leave every job a place of its own", async (t) => {
      const at = await openEngine(t, backend, { use });
      const ids = (await at.jobs.enqueueMany(work, params(60))).map((each) => each.id);
      const pivot = (await at.jobs.enqueue(work, { n: 0 }, { in: "1h" })).id;
      const waits = (await at.jobs.enqueueMany(work, params(20), { in: "10ms" })).map((each) => each.id);
      const refused: string[] = [];
      const attempt = async (verb: Promise<unknown>): Promise<void> => {
        await verb.catch((error: unknown) => {
          if (!isDaybookError(error) || error.code !== "conflict") throw error;
          refused.push(error.message);
        });
      };
      await at.clock.advance(10);

      // A unit that lost against another waits a little before it runs again.
      let busy = true;
      const ticking = (async () => {
        for (; busy; await new Promise((resolve) => setImmediate(resolve))) await at.clock.advance(1);
      })();
      await Promise.all([
        ...[...ids.slice(20), ...waits].map((id, n) =>
          attempt(at.jobs.move(id, n % 2 === 0 ? { before: pivot } : "last")),
        ),
        ...ids.slice(0, 20).map((id) => attempt(at.jobs.move(id, "first"))),
        ...params(10).map((each) => at.jobs.enqueue(work, each)),
        ...params(6).map(async () => {
          const { claim } = await at.turn(4, at.claimer(), { lookForDue: true });
          for (const each of claim.jobs.slice(1)) await at.end(each, { status: "cancelled", shutdown: true });
        }),
        at.queues.normalise("default"),
      ]).finally(() => (busy = false));
      await ticking;

      // One that a shutdown gave back has ended: another job stands in its place.
      for (const message of refused) assert.match(message, /is (running|cancelled) and cannot be moved/);
      await assertInvariants(at);
      const rows = await at.rows<{ position: number; status: string }>("select position, status from daybook_job_now");
      const open = rows.filter(({ status }) => status === "queued" || status === "waiting");
      const running = rows.filter(({ status }) => status === "running");
      assert.equal(open.length + running.length, 91);
      assert.equal(new Set(open.map(({ position }) => position)).size, open.length);
    });

    test("moves in transactions of users and on the book at once leave every job a place of its own", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const ids = (await book.jobs.enqueueMany(work, params(25))).map((each) => each.id);
      const [pivot = "", ...movers] = ids;

      const swap = (id: string) => async (tx: UserTx) => {
        await tx.jobs.enqueue(work, { n: 99 });
        await tx.jobs.move(id, { after: pivot });
      };
      for (let at = 0; at < movers.length; at += 6) {
        const [a, b, c, d, e, f] = movers.slice(at, at + 6) as [string, string, string, string, string, string];
        await Promise.all([
          book.write(swap(a)),
          book.write(swap(b)),
          ...[c, d, e, f].map((id) => book.jobs.move(id, { after: pivot })),
        ]);
      }

      assert.deepEqual(await book.doctor(), []);
    });
  });
}
