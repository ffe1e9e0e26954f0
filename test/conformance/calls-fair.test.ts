import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noteHost } from "../../src/calls/circuit.ts";
import type { Book } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { inOrder, ok, openCalls, status, target, workAll } from "../calls/target.ts";
import { backends, openTestStore } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

const hosts = (book: Book): Promise<{ tenant_id: string; failures: number; open: number }[]> =>
  book.read(
    (tx) => tx.sql`select tenant_id, failures, case when opened_at is null then 0 else 1 end as open
      from daybook_call_host order by tenant_id`,
  );

for (const backend of backends) {
  describe(backend, () => {
    test("a host that keeps failing is paused, then one call tries it, and the others follow when it answers", async (t) => {
      const failing = Array.from({ length: 6 }, () => status(503));
      const server = await target(t, inOrder(...failing, ok));
      const { book, clock } = await openCalls(t, backend, { calls: { perHost: { concurrency: 1 } } });
      const ids: string[] = [];
      for (let n = 0; n < 12; n++) ids.push((await book.calls.submit({ url: server.url })).id);
      const states = async (): Promise<string> => {
        const calls = await Promise.all(ids.map((id) => book.calls.get(id)));
        return calls.map((call) => call.status[0]).join("");
      };

      await workAll(book);
      assert.deepEqual([server.received.length, await states()], [5, "fffffsssssss"]);
      assert.deepEqual(await hosts(book), [{ tenant_id: "default", failures: 5, open: 1 }]);
      const { reason, because } = await book.calls.explain(ids[6] ?? "");
      assert.equal(reason, "host");
      assert.match(because[0] ?? "", /does not answer, 5 times in a row/);

      // The pause is over: the sweep lets one go, which fails, and the pause begins anew and longer.
      clock.step(15_000);
      await workAll(book);
      assert.deepEqual([server.received.length, await states()], [6, "ffffffssssss"]);
      clock.step(15_000);
      await workAll(book);
      assert.equal(server.received.length, 6);
      clock.step(15_000);
      await workAll(book);

      assert.equal(await states(), "ffffffssssss");
      const ended = await Promise.all(ids.map((id) => book.calls.get(id)));
      assert.deepEqual(new Set(ended.slice(6).map((call) => call.status)), new Set(["succeeded"]));
      assert.deepEqual([server.received.length, await hosts(book)], [12, []]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("the call that tries a paused host is due when the pause ends, and goes at once if the host answers earlier", async (t) => {
      let answer = status(503);
      const server = await target(t, (...args) => answer(...args));
      const { book, clock } = await openCalls(t, backend, { calls: { perHost: { concurrency: 1 } } });
      const ids: string[] = [];
      for (let n = 0; n < 9; n++) ids.push((await book.calls.submit({ url: server.url })).id);
      const call = (n: number) => book.calls.get(ids[n] ?? "");
      const worker = await book.startWorker();
      await worker.idle();
      assert.equal(server.received.length, 5);
      const opened = clock.now();
      const [explained] = (await book.calls.explain(ids[5] ?? "")).because;
      assert.match(explained ?? "", /^The host .* This one tries it from /);

      // Nobody looks for it: its own time wakes the worker. It fails, and the next one waits twice as long.
      await clock.advance(15_000);
      await worker.idle();
      assert.deepEqual([server.received.length, (await call(5)).startedAt], [6, opened + 15_000]);
      await clock.advance(29_999);
      // Time may have run ahead of the heart, and a worker whose beat is overdue takes nothing before its clock goes on.
      await until("it has beaten", async () => (roomsOf(book).attachment?.overdue() === false ? true : undefined));
      await worker.idle();
      assert.equal(server.received.length, 6);
      answer = ok;
      await clock.advance(1);
      await worker.idle();

      const ended = await Promise.all([6, 7, 8].map(call));
      assert.deepEqual(
        ended.map(({ status: state, startedAt }) => [state, startedAt]),
        ended.map(() => ["succeeded", opened + 45_000]),
      );
      assert.deepEqual(await hosts(book), []);
      assert.deepEqual(await book.doctor(), []);
    });

    test("when one call is answered while another fails, the calls that wait for the host follow", async (t) => {
      const server = await target(t, status(503));
      const { book, url } = await openCalls(t, backend, { calls: { perHost: { concurrency: 1 } } });
      for (let n = 0; n < 9; n++) await book.calls.submit({ url: server.url });
      await workAll(book);
      const { store } = await openTestStore(t, backend, { url });

      await store.write((tx) => noteHost(tx, { tenant: "default", host: server.host, answered: true, failures: 1 }));

      const waiting = await book.read((tx) => tx.sql`select id from daybook_job_now where status = 'waiting'`);
      assert.deepEqual([waiting, await hosts(book)], [[], [{ tenant_id: "default", failures: 1, open: 0 }]]);
    });

    test("the row of a host that no call waits for is removed", async (t) => {
      const server = await target(t, status(503));
      const { book, clock } = await openCalls(t, backend, { calls: { perHost: { concurrency: 1 } } });
      for (let n = 0; n < 6; n++) await book.calls.submit({ url: server.url });
      await workAll(book);
      for (const { id } of (await book.calls.list({ status: "scheduled" })).items) await book.calls.cancel(id);
      assert.equal((await hosts(book)).length, 1);

      clock.step(400_000);
      await workAll(book);

      assert.deepEqual(await hosts(book), []);
    });

    test("one tenant's dead host neither delays another tenant nor is known to it", async (t) => {
      const dead = await target(t, () => undefined);
      const alive = await target(t);
      const { book, clock } = await openCalls(t, backend);
      const [a, b] = [book.tenant("a"), book.tenant("b")];
      for (let n = 0; n < 40; n++) await a.calls.submit({ url: dead.url, timeout: "10s" });
      const worker = await book.startWorker({ concurrency: 10 });
      await dead.until(6);

      const made = [];
      for (let n = 0; n < 10; n++) made.push(await b.calls.submit({ url: n < 5 ? alive.url : `${alive.url}/x` }));
      await alive.until(10);

      assert.equal(dead.received.length, 6, "no more than a host's share runs at the same time");
      await clock.advance(10_000);
      assert.equal((await hosts(book)).length <= 1, true);
      for (const { id } of (await a.calls.list({ limit: 100 })).items) await a.calls.cancel(id).catch(() => undefined);
      await worker.idle();
      for (const { id } of made) assert.equal((await b.calls.get(id)).status, "succeeded");
      assert.deepEqual(
        (await hosts(book)).map((each) => each.tenant_id).filter((each) => each !== "a"),
        [],
      );
    });

    test("calls that wait for a host go on even if all calls that followed its answer were cancelled", async (t) => {
      let answer = status(503);
      const server = await target(t, (...args) => answer(...args));
      const { book, url } = await openCalls(t, backend, { calls: { perHost: { concurrency: 1 } } });
      for (let n = 0; n < 18; n++) await book.calls.submit({ url: server.url });
      await workAll(book);
      const { store } = await openTestStore(t, backend, { url });
      const note = { tenant: "default", host: server.host, answered: true, failures: 1 };
      await store.write((tx) => noteHost(tx, note));
      const followed = await book.read(
        (tx) => tx.sql<{
          id: string;
        }>`select call.id from daybook_call call join daybook_job_now job on job.kind = 'call' and job.kind_seq = call.seq
          where job.status = 'queued'`,
      );
      for (const { id } of followed) await book.calls.cancel(id);
      assert.deepEqual([followed.length, await hosts(book)], [11, [{ tenant_id: "default", failures: 1, open: 0 }]]);

      answer = ok;
      await workAll(book);
      assert.equal((await book.calls.list({ status: "succeeded" })).items.length, 2);
    });

    test("a tenant whose hosts all hang uses only its own places, and other tenants go on", async (t) => {
      const dead = [
        await target(t, () => undefined),
        await target(t, () => undefined),
        await target(t, () => undefined),
      ];
      const alive = await target(t);
      const calls = { perTenant: { concurrency: 8 } };
      const { book, clock } = await openCalls(t, backend, { calls });
      const [a, b] = [book.tenant("a"), book.tenant("b")];
      for (let n = 0; n < 6; n++) for (const { url } of dead) await a.calls.submit({ url, timeout: "10s" });
      const worker = await book.startWorker({ concurrency: 10 });
      await Promise.all(dead.map((each, index) => each.until(index < 2 ? 3 : 2)));

      for (let n = 0; n < 10; n++) await b.calls.submit({ url: alive.url });
      await alive.until(10);

      assert.deepEqual(
        dead.map((each) => each.received.length),
        [3, 3, 2],
      );
      // What waited has its turn when those before it were given up.
      const next = Promise.race(dead.map((each) => each.until(each.received.length + 1)));
      await clock.advance(10_000);
      await next;
      for (const { id } of (await a.calls.list({ limit: 100 })).items) await a.calls.cancel(id).catch(() => undefined);
      await worker.idle();
    });

    test("calls to one host respect its concurrency and its rate", async (t) => {
      let [open, most] = [0, 0];
      const server = await target(t, (_request, response) => {
        most = Math.max(most, ++open);
        setImmediate(() => {
          open--;
          response.end();
        });
      });
      const perHost = { concurrency: 2, rate: { max: 5, per: "1m" } };
      const { book, clock } = await openCalls(t, backend, { calls: { perHost } });
      for (let n = 0; n < 8; n++) await book.calls.submit({ url: server.url });
      await workAll(book);
      assert.deepEqual([server.received.length, most <= 2], [5, true]);
      clock.step(60_000);
      await workAll(book);
      assert.equal(server.received.length, 8);
    });

    test("a tenant's open calls are limited, and it may submit again when some have ended", async (t) => {
      const server = await target(t);
      const { book } = await openCalls(t, backend, { calls: { queuedMax: 5 } });
      const submit = (of: Book): Promise<unknown> => of.calls.submit({ url: server.url });
      for (let n = 0; n < 5; n++) await submit(book);

      await assert.rejects(submit(book), /5 calls have not ended/);
      await submit(book.tenant("other"));
      await workAll(book);
      await submit(book);
    });

    test("a process exceeds the limit on open calls by at most half of it", async (t) => {
      const calls = { queuedMax: 10 };
      const { book, url } = await openCalls(t, backend, { calls, worker: false });
      const other = await openCalls(t, backend, { url, calls, worker: false });
      const fill = async ({ calls: of }: Book): Promise<number> => {
        for (let made = 0; ; made++) {
          const full = await of.submit({ url: "https://a.example/" }).then(
            () => false,
            (error: Error) => /10 calls have not ended/.test(error.message),
          );
          if (full) return made;
        }
      };
      await book.calls.submit({ url: "https://a.example/" });

      assert.equal(await fill(other.book), 9, "alone it is exact");
      assert.equal(await fill(book), 4, "it had counted before");
      assert.deepEqual([await fill(book), await fill(other.book)], [0, 0]);
    });
  });
}
