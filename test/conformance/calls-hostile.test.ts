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
    test("an answer without an end is ended by its bytes on the socket, whatever they are", async (t) => {
      const { book } = await openCalls(t, backend);
      const made: [string, Awaited<ReturnType<typeof hostile.rawServer>>][] = [];
      for (const answer of [hostile.endlessExtension, hostile.endlessHints, hostile.endlessTrailer]) {
        const server = await hostile.rawServer(t, answer);
        made.push([(await book.calls.submit({ url: server.url, timeout: "10m" })).id, server]);
      }
      await workAll(book);

      for (const [id, server] of made) {
        const { status, outcome } = await book.calls.get(id);
        assert.deepEqual([status, outcome?.errorKind], ["failed", "protocol"]);
        assert.match(outcome?.error ?? "", /no valid HTTP, or too long, from 127/);
        // What was written and never read is in the buffers of the system.
        assert.ok(server.written() < 24 * 2 ** 20, `${server.written()} bytes`);
      }
    });

    test("a POST that may be sent once is never sent on a connection that its server may be closing", async (t) => {
      const { book } = await openCalls(t, backend);
      const server = await hostile.onePerConnection(t);
      const ids: string[] = [];
      for (let n = 0; n < 30; n++) ids.push((await book.calls.submit({ url: server.url, json: { n } })).id);

      const worker = await book.startWorker({ concurrency: 2 });
      await worker.idle();

      const ended = await Promise.all(ids.map((id) => book.calls.get(id)));
      assert.deepEqual([...new Set(ended.map(({ status }) => status))], ["succeeded"]);
      assert.deepEqual([server.served(), server.connections()], [30, 30]);
    });

    test("a request that may be sent again uses a connection that was kept, and only one of its own tenant", async (t) => {
      const { book } = await openCalls(t, backend);
      const ports = new Map<string, Set<number | undefined>>();
      const server = await target(t, ({ path }, response, { socket }) => {
        ports.set(path, (ports.get(path) ?? new Set()).add(socket.remotePort));
        response.end();
      });
      for (const more of [{ json: 1, attempts: 2 }, { method: "PUT", json: 1 }, {}, { method: "DELETE" }] as const) {
        for (const tenant of ["a", "b"])
          await book.tenant(tenant).calls.submit({ url: `${server.url}/${tenant}`, ...more });
      }

      const worker = await book.startWorker({ concurrency: 1 });
      await worker.idle();

      const [a = new Set(), b = new Set()] = [ports.get("/a"), ports.get("/b")];
      assert.equal(server.received.length, 8);
      assert.ok(a.size < 4 && b.size < 4, `${a.size} and ${b.size} connections`);
      assert.ok(a.isDisjointFrom(b));
    });

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
