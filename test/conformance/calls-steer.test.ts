import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { createBegins } from "../../src/calls/attempt/begin.ts";
import { DaybookError, type Book, type CallStatus, type Worker } from "../../src/index.ts";
import { ok, openCalls, status, target, workAll } from "../calls/target.ts";
import { backends, openTestStore, type Backend } from "../support/open-test.ts";

const commands = ["cancel", "resend", "reschedule", "delete"] as const;
type Command = (typeof commands)[number];

/** What each command makes of a call in each state: the state afterwards, or a refusal. */
const grid: Readonly<Record<CallStatus, Readonly<Record<Command, string>>>> = {
  scheduled: { cancel: "cancelled", resend: "refused", reschedule: "scheduled", delete: "refused" },
  running: { cancel: "cancelled", resend: "refused", reschedule: "refused", delete: "refused" },
  succeeded: { cancel: "refused", resend: "succeeded", reschedule: "refused", delete: "gone" },
  failed: { cancel: "refused", resend: "failed", reschedule: "refused", delete: "gone" },
  cancelled: { cancel: "refused", resend: "cancelled", reschedule: "refused", delete: "gone" },
};

function run(book: Book, command: Command, id: string): Promise<unknown> {
  if (command === "reschedule") return book.calls.reschedule(id, { in: "2h" });
  if (command === "resend") return book.calls.resend(id, { in: "1h" });
  return book.calls[command](id);
}

for (const backend of backends) {
  describe(backend, () => {
    test("every command on a call in every state does what it may, or is refused and changes nothing", async (t) => {
      const { book, worker, make, ended } = await openGrid(t, backend);

      for (const [state, row] of Object.entries(grid) as [CallStatus, (typeof grid)[CallStatus]][]) {
        for (const command of commands) {
          const id = await make(state);
          assert.equal((await book.calls.get(id)).status, state);
          const before = await book.calls.get(id);
          const expected = row[command];

          if (expected === "refused") {
            await assert.rejects(run(book, command, id), refusedAs("conflict", new RegExp(`call ${id} is ${state}`)));
            assert.deepEqual(await book.calls.get(id), before, `${state} ${command}`);
            continue;
          }
          await run(book, command, id);
          if (expected === "gone") await assert.rejects(book.calls.get(id), refusedAs("not_found", /there is no call/));
          else {
            if (state === "running") await ended(id);
            assert.equal((await book.calls.get(id)).status, expected, `${state} ${command}`);
          }
        }
      }
      for (const { id } of (await book.calls.list({ status: "running" })).items) await book.calls.cancel(id);
      await worker.idle();
      assert.deepEqual((await book.calls.list({ status: "running" })).items, []);
      assert.deepEqual(await book.doctor(), []);
    });

    test("cancelling a call that is being sent aborts the request, and the attempt says so", async (t) => {
      const server = await target(t, () => undefined);
      const { book } = await openCalls(t, backend);
      const { id } = await book.calls.submit({ url: server.url });
      const worker = await book.startWorker();
      await server.until(1);

      assert.deepEqual(await book.calls.cancel(id), { id, status: "cancelling" });
      await worker.idle();

      const { status: state, attempts, outcome } = await book.calls.get(id);
      assert.deepEqual([state, attempts[0]?.error?.kind, outcome?.errorKind], ["cancelled", "cancelled", "cancelled"]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a call between two attempts is running, and can be cancelled without being sent again", async (t) => {
      const server = await target(t, status(503));
      const { book, clock } = await openCalls(t, backend);
      const { id } = await book.calls.submit({ url: server.url, retry: "standard" });
      await workAll(book);
      assert.equal((await book.calls.get(id)).status, "running");

      assert.deepEqual(await book.calls.cancel(id), { id, status: "cancelled" });
      clock.step(60_000);
      await workAll(book);

      assert.deepEqual([(await book.calls.get(id)).status, server.received.length], ["cancelled", 1]);
    });

    test("a resend is a call of its own with the key of the first, or with one of its own", async (t) => {
      const server = await target(t, status(400));
      const { book } = await openCalls(t, backend);
      const first = await book.calls.submit({ url: server.url, json: { password: "geheim-17" }, tags: ["a"] });
      await workAll(book);

      const same = await book.calls.resend(first.id);
      // Two that are sent at the same time may arrive in either order.
      await workAll(book);
      const other = await book.calls.resend(first.id, { newKey: true });
      await workAll(book);

      assert.deepEqual(
        server.received.map(({ headers, body }) => [headers["idempotency-key"], body]),
        [first.id, first.id, other.id].map((key) => [key, '{"password":"geheim-17"}']),
      );
      const { resendOf, tags } = await book.calls.get(same.id);
      assert.deepEqual([resendOf, tags], [first.id, ["a"]]);
    });

    test("a rescheduled call is sent at its new time, also when that is earlier", async (t) => {
      const server = await target(t);
      const { book, clock } = await openCalls(t, backend);
      const [a, b] = [
        await book.calls.submit({ url: `${server.url}/a`, in: "1h" }),
        await book.calls.submit({ url: `${server.url}/b`, in: "1h" }),
      ];
      await book.calls.reschedule(a.id, { in: "2h" });
      await book.calls.reschedule(b.id, { at: clock.now() - 1000 });

      await workAll(book);
      assert.deepEqual(
        server.received.map(({ path }) => path),
        ["/b"],
      );
      clock.step(3_600_000);
      await workAll(book);
      assert.equal(server.received.length, 1);
      clock.step(3_600_000);
      await workAll(book);
      assert.deepEqual(
        server.received.map(({ path }) => path),
        ["/b", "/a"],
      );
    });

    test("a rolled-back transaction leaves no call, and deleting a call removes its tags and attempts", async (t) => {
      const server = await target(t);
      const { book } = await openCalls(t, backend);
      const undone = book.write(async (tx) => {
        await tx.calls.submit({ url: server.url, tags: ["undone"] });
        throw new Error("no");
      });
      await assert.rejects(undone, /no/);
      const kept = await book.write((tx) => tx.calls.submit({ url: server.url, tags: ["kept"] }));
      await workAll(book);

      assert.equal(server.received.length, 1);
      await book.write((tx) => tx.calls.delete(kept.id));

      const left = await book.read(
        (tx) => tx.sql<{ n: number }>`select (select count(*) from daybook_call)
        + (select count(*) from daybook_call_tag) + (select count(*) from daybook_call_attempt) as n`,
      );
      assert.equal(Number(left[0]?.n), 0);
      assert.deepEqual(await book.doctor(), []);
    });

    test("retention removes ended calls with their jobs, only of its tenant, and other jobs leave by their own age", async (t) => {
      const server = await target(t, status(503));
      const { book, clock } = await openCalls(t, backend);
      const of = [book, book.tenant("acme")];
      const ids: string[] = [];
      for (const each of of) {
        ids.push((await each.calls.submit({ url: server.url, tags: ["old"], retry: ["1s"] })).id);
        await each.calls.submit({ url: server.url, in: "9d", name: "open" });
      }
      for (let round = 0; round < 2; round++) {
        await workAll(book);
        clock.step(1000);
      }
      clock.step(8 * 86_400_000);
      await book.calls.cancel((await book.calls.submit({ url: server.url, in: "1h", name: "new" })).id);

      assert.equal((await book.retain({ jobs: "7d" })).jobs, 0);
      const would = await book.retain({ calls: "7d" });
      assert.deepEqual([would.jobs, would.runs, would.calls], [2, 2, 1]);
      assert.equal((await book.calls.get(ids[0] ?? "")).attempts.length, 2);
      const gone = await book.retain({ calls: "7d", apply: true });

      assert.deepEqual([gone.jobs, gone.calls], [2, 1]);
      await assert.rejects(book.calls.get(ids[0] ?? ""), refusedAs("not_found", /there is no call/));
      assert.deepEqual(
        (await book.calls.list()).items.map(({ name }) => name),
        ["new", "open"],
      );
      assert.equal((await of[1]?.calls.get(ids[1] ?? ""))?.status, "failed");
      const left = await book.read(
        (tx) => tx.sql<{ tags: number; attempts: number }>`select (select count(*) from daybook_call_tag) as tags,
          (select count(*) from daybook_call_attempt) as attempts`,
      );
      assert.deepEqual([Number(left[0]?.tags), Number(left[0]?.attempts)], [1, 2]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("retrying the job of a call that has ended does not send the call again", async (t) => {
      const server = await target(t, status(400));
      const { book } = await openCalls(t, backend);
      const { id } = await book.calls.submit({ url: server.url });
      await workAll(book);
      const [job] = (await book.jobs.list({ kind: "call" })).items;

      const again = await book.jobs.retry(job?.id ?? "");
      await workAll(book);

      const run_ = (await book.jobs.get(again.id)).run;
      assert.match(run_?.error?.message ?? "", /is failed: send it again with resend/);
      assert.deepEqual([server.received.length, (await book.calls.get(id)).attempts.length], [1, 1]);
    });

    test("a run that has lost its call cannot begin an attempt", async (t) => {
      const server = await target(t, status(503));
      const { book, url } = await openCalls(t, backend);
      const { id } = await book.calls.submit({ url: server.url, retry: ["1h"] });
      await workAll(book);
      const [retry, first] = (await book.jobs.list({ kind: "call" })).items;
      assert.deepEqual([first?.status, retry?.retryOf], ["failed", first?.id]);
      const { store } = await openTestStore(t, backend, { url });

      const begins = createBegins({ settings: { keys: undefined }, announce: undefined });
      const late = begins.begin(store, { id: first?.id ?? "", runId: first?.runId ?? "", tenant: "default" });

      await assert.rejects(late, /no longer this process's to send/);
      assert.equal((await book.calls.get(id)).attempts.length, 1);
    });

    test("a list finds calls by status, tags, host, name, correlation and time, page by page", async (t) => {
      const { book, clock } = await openCalls(t, backend, { worker: false });
      const at = clock.now();
      const make = (name: string, tags: string[], hour: number, host = "a.example"): Promise<unknown> =>
        book.calls.submit({
          name,
          tags,
          at: at + hour * 3_600_000,
          url: `https://${host}/`,
          correlationId: `c-${hour}`,
        });
      await make("one", ["x"], 1);
      await make("two", ["x", "y"], 2);
      await make("three", ["y", "z"], 3, "b.example:8443");
      await make("one", [], 4);
      const names = async (filter: Parameters<Book["calls"]["list"]>[0]): Promise<string[]> =>
        (await book.calls.list(filter)).items.map(({ name }) => name);

      assert.deepEqual(await names({}), ["one", "three", "two", "one"]);
      assert.deepEqual(await names({ tag: "y" }), ["three", "two"]);
      assert.deepEqual(await names({ tags: { any: ["x", "z"] } }), ["three", "two", "one"]);
      assert.deepEqual(await names({ tags: { all: ["x", "y"] } }), ["two"]);
      assert.deepEqual(await names({ tags: { any: ["x"], all: ["y"] } }), ["two"]);
      for (const tags of [{}, null, { any: [] }, { all: [5] }] as never[]) {
        await assert.rejects(book.calls.list({ tags }), refusedAs("invalid", /tags is (?:\{ any|null)/));
      }
      for (const after of ["x", "", "-1", "1.5"]) {
        await assert.rejects(book.calls.list({ after }), refusedAs("invalid", /is not a cursor/));
      }
      assert.deepEqual(await names({ host: "b.example:8443" }), ["three"]);
      assert.deepEqual(await names({ name: "one", correlationId: "c-4" }), ["one"]);
      assert.deepEqual(await names({ from: at + 7_200_000, to: at + 10_800_000 }), ["two"]);
      assert.deepEqual(await names({ status: ["failed", "running"] }), []);
      const first = await book.calls.list({ limit: 3, status: "scheduled" });
      assert.deepEqual(await names({ limit: 3, after: first.next ?? "" }), ["one"]);
      assert.equal((await book.calls.list({ limit: 1, after: first.next ?? "" })).next, null);
    });
  });
}

function refusedAs(code: string, message: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof DaybookError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}

/** Makes calls in a given state, one after the other, in one book. */
async function openGrid(
  t: TestContext,
  backend: Backend,
): Promise<{
  book: Book;
  worker: Worker;
  make(state: CallStatus): Promise<string>;
  ended(id: string): Promise<void>;
}> {
  const server = await target(t, (request, response, incoming) => {
    if (request.path === "/held") return;
    (request.path === "/ok" ? ok : status(400))(request, response, incoming);
  });
  const { book } = await openCalls(t, backend, { calls: { perHost: { concurrency: 50 } } });
  const worker = await book.startWorker({ concurrency: 50 });
  const make = async (state: CallStatus): Promise<string> => {
    const path = { running: "held", succeeded: "ok", failed: "bad", scheduled: "ok", cancelled: "ok" }[state];
    const waits = state === "scheduled" || state === "cancelled";
    const before = server.received.length;
    const { id } = await book.calls.submit({ url: `${server.url}/${path}`, ...(waits ? { in: "1h" } : {}) });
    if (state === "cancelled") await book.calls.cancel(id);
    else if (state === "running") await server.until(before + 1);
    else if (!waits) {
      await server.until(before + 1);
      await ended(id);
    }
    return id;
  };
  const ended = async (id: string): Promise<void> => {
    while ((await book.calls.get(id)).finishedAt === null) await new Promise((resolve) => setImmediate(resolve));
  };
  return { book, worker, make, ended };
}
