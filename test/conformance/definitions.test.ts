import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { app, event, job, listener, manualClock, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const receipt = job("send-receipt", {
  params: z.object({ orderId: z.string(), copies: z.number().optional() }),
  queue: "mail",
  attempts: 5,
  backoff: ["5s", "1m"],
  timeout: "30s",
  concurrency: 2,
  rate: { max: 10, per: "1m" },
  run: () => undefined,
});
const plain = job("plain", { run: () => undefined });
const Paid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
const Sent = event("order.sent");
const tell = listener("tell", { on: Sent, run: () => undefined });
const house = app("house", { setup: (home) => void home.every("1h", { name: "water" }, () => undefined) });

async function namesOf(book: Book, filter = {}): Promise<string[]> {
  return (await book.definitions.list(filter)).items.map(({ kind, name }) => `${kind} ${name}`);
}

for (const backend of backends) {
  describe(backend, () => {
    test("jobs that were hosted are known with their settings and what they take, and events of this process with theirs", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [receipt, plain, Paid, tell], clock });
      const worker = await book.startWorker();

      const { items, next } = await book.definitions.list();
      const one = await book.definitions.get("send-receipt");
      const said = await book.definitions.get("order.paid");
      await worker.stop();

      assert.equal(next, null);
      assert.deepEqual(
        items.map(({ kind, name, hasSchema, hosted }) => [kind, name, hasSchema, hosted]),
        [
          ["job", "plain", false, true],
          ["job", "send-receipt", true, true],
          ["event", "order.paid", true, true],
          ["event", "order.sent", false, true],
        ],
      );
      assert.ok(items.every((each) => !("schema" in each)));
      assert.deepEqual(one.settings, {
        queue: "mail",
        priority: 0,
        attempts: 5,
        losses: 3,
        backoff: ["5s", "1m"],
        timeoutMs: 30_000,
        concurrency: 2,
        concurrencyPerKey: null,
        rate: { max: 10, perMs: 60_000, byKey: false },
        notify: null,
      });
      assert.deepEqual([one.sessionIds, one.lastSeenAt, one.hostedAt], [[book.sessionId], clock.now(), clock.now()]);
      assert.deepEqual(one.schema?.["required"], ["orderId"]);
      assert.deepEqual(said.schema?.["required"], ["orderId"]);
    });

    test("a page goes on behind the last name, from the jobs to the events", async (t) => {
      const { book } = await openTest(t, backend, { use: [receipt, plain, Paid, Sent], clock: manualClock() });
      await (await book.startWorker()).stop();
      const seen: string[] = [];
      for (let after: string | undefined = ""; after !== undefined;) {
        const page = await book.definitions.list({ limit: 1, ...(after === "" ? {} : { after }) });
        seen.push(...page.items.map(({ name }) => name));
        after = page.next ?? undefined;
      }

      assert.deepEqual(seen, ["plain", "send-receipt", "order.paid", "order.sent"]);
      assert.deepEqual(await namesOf(book, { kind: "event" }), ["event order.paid", "event order.sent"]);
      assert.deepEqual(await namesOf(book, { kind: "job" }), ["job plain", "job send-receipt"]);
      for (const after of ["x", "", "W10"]) await assert.rejects(book.definitions.list({ after }), { code: "invalid" });
      await assert.rejects(book.definitions.list({ kind: "call" as never }), { code: "invalid" });
    });

    test("what nobody runs any more is known and not hosted, and a name that was meant is offered", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [receipt], clock: manualClock() });
      await (await book.startWorker()).stop();
      await book.close();
      const { book: later } = await openTest(t, backend, { url, use: [plain], clock: manualClock() });
      await (await later.startWorker()).stop();

      const one = await later.definitions.get("send-receipt");

      assert.deepEqual([one.hosted, one.sessionIds], [false, []]);
      await assert.rejects(later.definitions.get("send-reciept"), { code: "not_found", message: /send-receipt/ });
    });

    test("a tenant sees which jobs there are, and not who runs them or what another tenant's apps registered", async (t) => {
      const { book } = await openTest(t, backend, { use: [plain, house], clock: manualClock() });
      const worker = await book.startWorker();
      const acme = book.tenant("acme");
      const { session } = await acme.workers.attach({ names: ["remote"] });

      const mine = await book.definitions.list();
      const theirs = await acme.definitions.list();
      await worker.stop();

      assert.ok(mine.items.some(({ name, app: owner }) => name === "default/house/0/water" && owner?.key === "house"));
      assert.ok(!mine.items.some(({ name }) => name === "remote"), session);
      assert.deepEqual(
        theirs.items.map(({ name, hosted, sessionIds, lastSeenAt, settings }) => [
          name,
          hosted,
          sessionIds,
          lastSeenAt,
          settings?.queue,
        ]),
        [
          ["plain", true, null, null, "default"],
          ["remote", true, null, null, undefined],
        ],
      );
      await assert.rejects(acme.definitions.get("default/house/0/water"), { code: "not_found" });
    });
  });
}
