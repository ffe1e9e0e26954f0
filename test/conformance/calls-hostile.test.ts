import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import * as hostile from "../calls/hostile.ts";
import { openCalls, target, workAll } from "../calls/target.ts";
import { backends } from "../support/open-test.ts";

/** What becomes of a call to each of them: its status and the kind of its error. */
const ends: readonly (readonly [Parameters<typeof hostile.rawServer>[1], string, string | null])[] = [
  [hostile.endless, "succeeded", null],
  [hostile.endlessChunks, "succeeded", null],
  [hostile.gzipBomb, "succeeded", null],
  [hostile.brokenGzip, "failed", "protocol"],
  [hostile.manyHeaders, "failed", "protocol"],
  [hostile.longHeader, "failed", "protocol"],
  [hostile.drip, "failed", "timeout"],
  [hostile.hang, "failed", "timeout"],
  [hostile.closesEarly, "failed", "reset"],
  [hostile.closesInBody, "failed", "reset"],
  [hostile.badStatus, "failed", "protocol"],
  [hostile.noHttp, "failed", "protocol"],
  [hostile.smuggled, "failed", "protocol"],
  [hostile.switches, "failed", "reset"],
];

for (const backend of backends) {
  describe(backend, () => {
    test("a server that breaks the protocol costs its own call an attempt and affects no other", async (t) => {
      const { book } = await openCalls(t, backend, { clock: systemClock });
      const good = await target(t);
      // What a first call loads is not what these cost.
      await book.calls.submit({ url: good.url });
      await workAll(book);
      const made: { id: string; name: string }[] = [];
      for (const [answer, , kind] of ends) {
        const { url } = await hostile.rawServer(t, answer);
        const timeout = kind === "timeout" ? 300 : "20s";
        made.push(await book.calls.submit({ url, name: answer.name, timeout }));
      }
      const others = await Promise.all(Array.from({ length: 20 }, () => book.calls.submit({ url: good.url })));
      const before = process.memoryUsage().rss;

      const worker = await book.startWorker({ concurrency: 30 });
      await worker.idle();

      const grown = (process.memoryUsage().rss - before) / 2 ** 20;
      const found = await Promise.all(made.map(({ id }) => book.calls.get(id, { reveal: true })));
      assert.deepEqual(
        found.map(({ name, status, outcome }) => [name, status, outcome?.errorKind]),
        ends.map(([answer, status, kind]) => [answer.name, status, kind]),
      );
      for (const { attempts } of found.slice(0, 3)) {
        const response = attempts[0]?.response;
        assert.deepEqual([response?.truncated, response?.bytes, response?.said?.body?.length], [true, 65_536, 65_536]);
      }
      for (const { id } of others) assert.equal((await book.calls.get(id)).status, "succeeded");
      assert.ok(grown < 50, `the process grew by ${grown.toFixed(0)} MB`);
    });
  });
}
