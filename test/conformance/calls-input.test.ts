import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDaybookError, job, listener, type Book, type SubmitOptions } from "../../src/index.ts";
import { certificate } from "../calls/certificate.ts";
import { ok, openCalls, status, target, workAll } from "../calls/target.ts";
import { backends } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const url = "https://api.example.com/orders";

/** What is refused at once, and a part of what is said about it. */
const bad: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /submit takes/],
  [{}, /needs a url/],
  [{ url: "api.example.com" }, /cannot be read/],
  [{ url: "ftp://example.com/" }, /by http and https/],
  [{ url: "https://ada:pw@example.com/" }, /Authorization header/],
  [{ url: "http://127.0.0.2/" }, /is not allowed/],
  [{ url: "http://10.0.0.1/" }, /is not allowed/],
  [{ url: "http://[::1]/" }, /is not allowed/],
  [{ url: "http://example.com:25/" }, /is not allowed/],
  [{ url: `https://example.com/${"x".repeat(9000)}` }, /at most 8192/],
  [{ url, method: "TRACE" }, /is not one of GET/],
  [{ url, method: "GET", json: {} }, /GET has no body/],
  [{ url, json: {}, body: "x" }, /not both/],
  [{ url, body: "x".repeat(10 << 20) }, /over the limit/],
  [{ url, body: new Uint8Array(2 << 20) }, /over the limit/],
  [{ url, json: { a: "x".repeat(2 << 20) } }, /over the limit/],
  [{ url, json: { a: Number.NaN } }, /NaN/],
  [{ url, body: 5 }, /give text or bytes/],
  [{ url, headers: { host: "evil.example" } }, /client's own/],
  [{ url, headers: { "Transfer-Encoding": "chunked" } }, /client's own/],
  [{ url, headers: { "content-length": "5" } }, /client's own/],
  [{ url, headers: { "proxy-authorization": "x" } }, /client's own/],
  [{ url, headers: { "webhook-signature": "x" } }, /client's own/],
  [{ url, headers: { "x-a": "b\r\nx-evil: 1" } }, /line break/],
  [{ url, headers: { "x-a": "b\0" } }, /control character/],
  [{ url, headers: { "x-a": "é" } }, /beyond ASCII/],
  [{ url, headers: { "x a": "b" } }, /not the name of a header/],
  [{ url, headers: { "x-a\r\n": "b" } }, /not the name of a header/],
  [{ url, headers: { Accept: "a", accept: "b" } }, /twice/],
  [{ url, headers: { "x-a": "b".repeat(9000) } }, /longer than/],
  [{ url, headers: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`x-${n}`, ""])) }, /65 headers/],
  [{ url, headers: [["a", "b"]] }, /pairs of names/],
  [{ url, tags: Array.from({ length: 33 }, (_, n) => `t${n}`) }, /33 tags/],
  [{ url, tags: "one" }, /list of texts/],
  [{ url, tags: ["x".repeat(129)] }, /at most 128/],
  [{ url, at: "+010000-01-01T00:00:00Z" }, /after the year 9999/],
  [{ url, at: "tomorrow" }, /which is not a time/],
  [{ url, at: 1, in: 1 }, /not both/],
  [{ url, in: "200y" }, /not a duration/],
  [{ url, attempts: 0 }, /attempts 0/],
  [{ url, retry: "often" }, /"standard"/],
  [{ url, retry: [] }, /1 to 100 steps/],
  [{ url, timeout: "1h" }, /at most 10m/],
  [{ url, timeout: 0 }, /at least/],
  [{ url, redirects: 11 }, /redirects 11/],
  [{ url, secret: "short" }, /16 to 512/],
  [{ url, secret: "whsec_###############" }, /as base64/],
  [{ url, secret: "whsec_c2hvcnQ=aaaaa" }, /as base64/],
  [{ url, name: "a\nb" }, /control character/],
  [{ url, idempotencyKey: "" }, /not empty/],
  [{ url, idempotencyKey: "k".repeat(600) }, /at most 512/],
  [{ url, header: {} }, /did you mean "headers"/],
];

for (const backend of backends) {
  describe(backend, () => {
    test("an invalid call is refused before anything is written", async (t) => {
      const { book } = await openCalls(t, backend, { calls: { allow: [] } });

      for (const [options, message] of bad) {
        await assert.rejects(
          book.calls.submit(options as SubmitOptions),
          (error: unknown) => isDaybookError(error) && error.code === "invalid" && message.test(error.message),
          `${JSON.stringify(options)?.slice(0, 100)} ${String(message)}`,
        );
      }
      assert.deepEqual((await book.calls.list()).items, []);
      assert.deepEqual((await book.jobs.list({ kind: "all" })).items, []);
    });

    test("another tenant's call is as unknown as a random id, for every verb", async (t) => {
      const server = await target(t);
      const { book } = await openCalls(t, backend);
      const [a, b] = [book.tenant("a"), book.tenant("b")];
      const { id } = await a.calls.submit({ url: server.url, tags: ["x"], correlationId: "c", in: "1h" });
      const done = await a.calls.submit({ url: server.url });
      await workAll(book);
      const random = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";
      const verbs: readonly ((of: Book["calls"], call: string) => Promise<unknown>)[] = [
        (of, call) => of.get(call),
        (of, call) => of.explain(call),
        (of, call) => of.cancel(call),
        (of, call) => of.resend(call),
        (of, call) => of.reschedule(call, { in: 1 }),
        (of, call) => of.delete(call),
      ];
      const messageOf = async (work: Promise<unknown>): Promise<string> =>
        work.then(
          () => "done",
          (error: Error) => error.message,
        );

      for (const verb of verbs) {
        const nobodys = await messageOf(verb(b.calls, random));
        assert.match(nobodys, /there is no call/);
        for (const theirs of [id, done.id]) {
          assert.equal((await messageOf(verb(b.calls, theirs))).replace(theirs, random), nobodys);
          await b.write(async (tx) => {
            for (const each of [tx.calls.cancel, tx.calls.resend, tx.calls.delete]) {
              assert.match(await messageOf(each(theirs)), /there is no call/);
            }
          });
        }
      }
      assert.deepEqual((await b.calls.list()).items, []);
      assert.deepEqual((await b.calls.list({ tag: "x" })).items, []);
      assert.deepEqual((await b.calls.list({ correlationId: "c" })).items, []);
      assert.equal((await a.calls.list()).items.length, 2);
      assert.deepEqual(
        [(await a.calls.get(id)).status, (await a.calls.get(done.id)).status],
        ["scheduled", "succeeded"],
      );
    });

    test("a tenant cannot use another tenant's open connection to an address that it may not reach", async (t) => {
      const server = await target(t);
      const allow = (tenant: string): string[] => (tenant === "inside" ? ["127.0.0.1"] : []);
      const { book, url: at } = await openCalls(t, backend, { calls: { allow }, worker: false });
      const ids: string[] = [];
      for (const tenant of ["inside", "outside", "inside"]) {
        ids.push((await book.tenant(tenant).calls.submit({ url: server.url })).id);
      }
      const { book: sender } = await openCalls(t, backend, { url: at, calls: { allow } });
      await workAll(sender);

      const { status: state, outcome } = await book.tenant("outside").calls.get(ids[1] ?? "");
      assert.deepEqual(
        [state, outcome?.errorKind, outcome?.error, server.received.length],
        ["failed", "refused", "the destination is not allowed", 2],
      );
    });

    test("every change of a call is an event in the same transaction, and says nothing of what was said", async (t) => {
      const heard: unknown[] = [];
      const tells = listener("tells", { on: "call.>", run: (payload) => void heard.push(payload) });
      const server = await target(t, ({ path }, ...rest) => (path === "/bad" ? status(400) : ok)({} as never, ...rest));
      const { book } = await openCalls(t, backend, { use: [tells] });
      await assert.rejects(
        book.write(async (tx) => {
          await tx.calls.submit({ url: server.url });
          throw new Error("undone");
        }),
      );
      const { id } = await book.calls.submit({ url: server.url, name: "good" });
      await book.calls.submit({ url: `${server.url}/bad`, name: "bad" });
      const later = await book.calls.submit({ url: server.url, name: "later", in: "1h" });
      await book.calls.cancel(later.id);
      await workAll(book);

      const topics = (await book.events.list({ limit: 100 })).items.map(({ topic }) => topic).toSorted();
      assert.deepEqual(topics, [
        ...["call.cancelled", "call.failed", "call.started", "call.started"],
        ...["call.submitted", "call.submitted", "call.submitted", "call.succeeded"],
      ]);
      assert.equal(heard.length, 8);
      const end = (heard as { id: string; outcome: { responseStatus: number } | null }[]).filter(
        (each) => each.id === id && each.outcome !== null,
      );
      assert.deepEqual(
        end.map(({ outcome, ...rest }) => [outcome?.responseStatus, Object.keys(rest).toSorted()]),
        [[200, ["correlationId", "dueAt", "host", "id", "method", "name"]]],
      );
    });

    test("https is checked against the authorities one trusts", async (t) => {
      const server = await target(t, ok, certificate);
      const { book, url: at } = await openCalls(t, backend);
      const first = await book.calls.submit({ url: `https://127.0.0.1:${server.port}/` });
      await workAll(book);
      const refused = await book.calls.get(first.id);
      assert.deepEqual([refused.status, refused.outcome?.errorKind, server.received.length], ["failed", "tls", 0]);
      await book.close();

      const trusting = await openCalls(t, backend, { url: at, calls: { ca: certificate.cert } });
      const { id } = await trusting.book.calls.submit({ url: `https://127.0.0.1:${server.port}/` });
      await workAll(trusting.book);

      const { status: state, attempts } = await trusting.book.calls.get(id);
      assert.deepEqual([state, server.received.length], ["succeeded", 1]);
      assert.notEqual(attempts[0]?.phases.tlsMs, null);
    });

    test("no program may define a job with the name of the call job", async (t) => {
      const theirs = job("daybook.call", { run: () => undefined });
      await assert.rejects(openCalls(t, backend, { use: [theirs] }), /is the job that makes calls/);
      const { book } = await openCalls(t, backend);
      await assert.rejects(book.jobs.enqueue("daybook.call", {}), /calls\.submit/);
    });

    test("a job that was made or changed by hand sends only its own call", async (t) => {
      const server = await target(t);
      const { book } = await openCalls(t, backend);
      const [one, two] = [
        await book.calls.submit({ url: `${server.url}/one`, in: "1h" }),
        await book.calls.submit({ url: `${server.url}/two`, in: "1h" }),
      ];
      const { jobId } = await book.calls.get(two.id);
      await assert.rejects(book.jobs.enqueue("daybook.call", { id: one.id }), /calls\.submit/);
      await assert.rejects(book.jobs.edit(jobId ?? "", { id: one.id }), /calls\.submit/);
      // Whoever writes into the table itself changes what people see, and not what is sent.
      await tamper(
        book,
        (tx) => tx.sql`update daybook_job set params = ${JSON.stringify({ id: one.id })} where id = ${jobId}`,
      );
      await book.calls.reschedule(two.id, { in: 0 });

      await workAll(book);

      assert.deepEqual(
        server.received.map(({ path }) => path),
        ["/two"],
      );
      assert.deepEqual(
        [(await book.calls.get(one.id)).status, (await book.calls.get(two.id)).status],
        ["scheduled", "succeeded"],
      );
      assert.deepEqual(await book.doctor(), []);
    });
  });
}
