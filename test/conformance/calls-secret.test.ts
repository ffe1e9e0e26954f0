import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { dirname, join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { Client } from "pg";
import { listener, manualClock, sink, type Book } from "../../src/index.ts";
import { bodies, headers, quietHeaders, repeating, spellings, urls } from "../calls/corpus.ts";
import { inOrder, ok, openCalls, status, target, testKey, workAll } from "../calls/target.ts";
import { parsed, runCli } from "../cli/run-cli.ts";
import { allText } from "../support/book-text.ts";
import { backends, bookUrl, cleanup, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const canary = "kanarie-5f1c9e77-q8Zt2";
const canary64 = Buffer.from(canary).toString("base64");

/** The files that hold the book, as they are on disk: for PostgreSQL the log of all it wrote since `from`. */
async function filesOf(book: Book, url: string, from: string | undefined): Promise<string[]> {
  if (from === undefined) return readdirSync(dirname(url)).map((file) => join(dirname(url), file));
  const [at] = await book.read(
    (tx) => tx.sql<{ folder: string; first: string; last: string }>`select current_setting('data_directory') as folder,
      pg_walfile_name(${from}::pg_lsn) as first, pg_walfile_name(pg_current_wal_lsn()) as last`,
  );
  const log = join(at?.folder ?? "", "pg_wal");
  const segments = readdirSync(log).filter((name) => /^[0-9A-F]{24}$/.test(name));
  return segments
    .filter((name) => name >= (at?.first ?? "") && name <= (at?.last ?? ""))
    .map((name) => join(log, name));
}

/** Where PostgreSQL's log is now. Every test of the run writes to that log and makes the server forget the old of it, so this
 *  connection keeps what comes from here on as long as it is open. */
async function walPosition(t: TestContext, url: string, backend: string): Promise<string | undefined> {
  if (backend === "sqlite") return undefined;
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  const { rows } = await client.query<{ at: string }>(
    "select pg_current_wal_lsn()::text as at, pg_create_physical_replication_slot(current_database(), true, true)",
  );
  return rows[0]?.at;
}

for (const backend of backends) {
  describe(backend, () => {
    test("a secret of a request that its answer repeats in any spelling is in no table, file, fact, error, metric or output", async (t) => {
      const said: unknown[] = [];
      const hear = (message: unknown): void => void said.push(message);
      for (const channel of ["daybook:call.changed", "daybook:call.refused", "daybook:job.settled"]) {
        subscribe(channel, hear);
        t.after(() => unsubscribe(channel, hear));
      }
      const answers = repeating(canary);
      let next = 0;
      const server = await target(t, (...args) => answers[next++ % answers.length]?.(...args));
      const forms = [...urls, ...headers, ...quietHeaders, ...bodies].map((form) => form(canary, server.url));
      assert.ok(forms.length >= 60 && forms.length > 2 * answers.length, `${forms.length} forms`);
      // What happens to calls is kept as events too, and a sink sends one on.
      const tells = listener("tells", { on: "call.>", run: (payload) => void said.push(payload) });
      const url = `${server.url}/services/${canary}?key=${canary}`;
      const signed = { url, headers: { authorization: `Bearer ${canary}` }, secret: `whsec_${canary64}` };
      const tell = sink("tell", { on: "order.paid", to: { webhook: signed }, attempts: 1 });
      const { book, url: at } = await openCalls(t, backend, { views: true, use: [tells, tell] });
      const from = await walPosition(t, at, backend);
      const ids: string[] = [];
      for (const form of forms) {
        ids.push((await book.calls.submit({ ...form, secret: canary, name: "harmless-o17", redirects: 1 })).id);
      }
      for (let n = 0; n < answers.length; n++) await book.events.publish("order.paid", { n });
      const refused = [
        () => book.calls.submit({ url: `http://u:${canary}@example.com/` }),
        () => book.calls.submit({ url: server.url, json: {}, secret: canary.slice(0, 8) }),
        () => book.calls.submit({ url: server.url, headers: { cookie: `${canary}-4`, Cookie: `${canary}-5` } }),
        () => book.calls.submit({ url: `https://10.0.0.1/?key=${canary}` }),
        () => book.calls.submit({ url: `http://example.com:0/${canary}` }),
        () => book.calls.submit({ url: server.url, headers: { authorization: `${canary}\n` } }),
      ];
      for (const each of refused) await assert.rejects(each, (error) => said.push(inspect(error, { depth: 9 })) > 0);
      await workAll(book);

      // All of them were sent as they were given.
      assert.ok(server.received.length >= forms.length);
      const asSent = JSON.stringify(server.received);
      assert.ok(asSent.includes(`/services/T024BE7LD/B024BE7LE/${canary}`) && asSent.includes(`Bearer ${canary}`));
      const shown = await Promise.all(ids.map((id) => book.calls.get(id)));
      assert.deepEqual([...new Set(shown.map(({ kept }) => kept))], ["sealed"]);
      assert.ok(shown.every(({ finishedAt }) => finishedAt !== null));
      const [first = ""] = ids;
      const commands: readonly (readonly string[])[] = [
        ...[
          ["calls", "show", first],
          ["calls", "show", first, "--json"],
          ["calls", "list"],
          ["calls", "explain", first],
        ],
        ...[
          ["runs", "list", "--json"],
          ["errors", "--json"],
          ["events", "list", "--json"],
        ],
        ...[
          ["jobs", "list", "--json"],
          ["dead-letters", "list", "--json"],
          ["sinks", "list", "--json"],
        ],
      ];
      const printed = await Promise.all(
        commands.map((args) => runCli([...args, "--book", at], { env: { DAYBOOK_KEY: testKey } })),
      );
      for (const [index, { code }] of printed.entries()) assert.equal(code, 0, commands[index]?.join(" ") ?? "");
      const log = await book.read((tx) => tx.sql`select * from http_execution_log`);
      assert.ok(log.length >= forms.length);
      const texts = [
        ...[await allText(book, backend), inspect(said, { depth: 9, maxStringLength: null }), await book.metrics()],
        ...[JSON.stringify(shown), JSON.stringify(await book.calls.list()), JSON.stringify(log)],
        ...[JSON.stringify(await book.jobs.list({ kind: "all" })), JSON.stringify(await book.deadLetters.list())],
        ...printed.map(({ stdout, stderr }) => stdout + stderr),
      ];
      for (const text of texts) {
        assert.ok(text.length > 10);
        for (const form of spellings(canary)) {
          const index = text.indexOf(form);
          assert.equal(index, -1, text.slice(Math.max(0, index - 300), index + 60));
        }
      }
      const files = (await filesOf(book, at, from)).map((file) => readFileSync(file));
      for (const bytes of files) for (const form of spellings(canary)) assert.equal(bytes.indexOf(form), -1, form);
      // What is looked for would be found: the names of the same calls are in these files.
      assert.ok(files.some((bytes) => bytes.includes("harmless-o17")));
    });

    test("what was sent and what came back is shown to whoever reveals it with the key", async (t) => {
      const server = await target(t, ({ path }, response) => {
        if (path === "/away") response.writeHead(302, { location: `/end?token=${canary}` }).end();
        else response.writeHead(200, { "set-cookie": `sid=${canary}` }).end(Buffer.from([0, 1]));
      });
      const { book, url } = await openCalls(t, backend);
      const request = {
        url: `${server.url}/away`,
        headers: { cookie: canary },
        body: Buffer.from([0, 2]),
        method: "PUT",
      } as const;
      const { id } = await book.calls.submit({ ...request, redirects: 1 });
      await workAll(book);

      const { attempts, ...hiddenCall } = await book.calls.get(id);
      const revealed = await book.calls.get(id, { reveal: true });
      const { stdout } = await runCli(["calls", "reveal", id, "--book", url, "--json"], {
        env: { DAYBOOK_KEY: testKey },
      });
      const without = await runCli(["calls", "reveal", id, "--book", url]);

      assert.deepEqual(hiddenCall.request, {
        method: "PUT",
        url: `${server.url}/[hidden]`,
        body: "[hidden]",
        base64: false,
        bodyBytes: 2,
        signed: false,
        headers: { "content-type": "application/octet-stream", cookie: "[hidden]" },
      });
      assert.deepEqual(attempts[0]?.response, { status: 200, bytes: 2, truncated: false, said: null });
      assert.deepEqual(
        [revealed.request.url, revealed.request.headers["cookie"], revealed.request.body, revealed.request.base64],
        [request.url, canary, "AAI=", true],
      );
      const { headers: came, ...rest } = revealed.attempts[0]?.response?.said ?? assert.fail();
      assert.deepEqual(rest, { body: "AAE=", base64: true, hops: [`${server.url}/end?token=${canary}`] });
      assert.equal(came["set-cookie"], `sid=${canary}`);
      assert.deepEqual(parsed(stdout)["request"], revealed.request);
      assert.match(
        without.stderr,
        /is sealed with key \w{8}, which this process does not have: give it with DAYBOOK_KEY/,
      );
    });

    test("without a key, a request with a header that is always a secret is refused with advice", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });

      for (const form of headers) {
        await assert.rejects(book.calls.submit(form(canary, "https://a.example")), (error: Error) => {
          assert.match(
            error.message,
            /^the header "[\w-]+" would be kept in the book in clear: give a key with DAYBOOK_KEY/,
          );
          assert.ok(!error.message.includes(canary));
          return true;
        });
      }
      await assert.rejects(
        book.calls.submit({ url: "https://a.example", secret: canary }),
        /a webhook secret would be/,
      );
    });

    test("without a key, of a call that may have a secret nothing is kept once it has ended, and it says so", async (t) => {
      const answers = repeating(canary);
      let next = 0;
      const server = await target(t, (...args) => answers[next++ % answers.length]?.(...args));
      const { book } = await openTest(t, backend, { views: true, calls: { allow: ["127.0.0.1"] } });
      const ids: string[] = [];
      for (const [index, form] of [...urls, ...quietHeaders, ...bodies].entries()) {
        ids.push((await book.calls.submit({ ...form(canary, server.url), idempotencyKey: `k${index}` })).id);
      }
      const open = await book.calls.get(ids[0] ?? "", { reveal: true });
      await workAll(book);

      assert.match(open.request.url, new RegExp(`${canary}$`));
      assert.ok(server.received.length >= ids.length);
      const text =
        (await allText(book, backend)) +
        JSON.stringify(await book.read((tx) => tx.sql`select * from http_execution_log`));
      for (const form of spellings(canary)) assert.ok(!text.includes(form), form);
      for (const id of ids) {
        const call = await book.calls.get(id, { reveal: true });
        assert.deepEqual(call, await book.calls.get(id));
        assert.equal(call.kept, "until_ended", call.request.url);
        await assert.rejects(
          book.calls.resend(id),
          /might have a secret and was submitted without a key \(DAYBOOK_KEY\)/,
        );
      }
      // It is still known whether a request is the same.
      const [form = assert.fail()] = urls;
      const again = (secret: string) => book.calls.submit({ ...form(secret, server.url), idempotencyKey: "k0" });
      const { id, created } = await again(canary);
      assert.deepEqual([id, created], [ids[0], false]);
      await assert.rejects(again("another"), /belongs to call .* with another request/);
    });

    test("without a key, a call and an answer without anything that may be secret are kept in clear", async (t) => {
      const server = await target(t, (_request, response) => {
        response.writeHead(200, { "content-type": "application/json", "x-request-id": "7f3a9c1e5b" });
        response.end('{"done":true}');
      });
      const { book } = await openTest(t, backend, { calls: { allow: ["127.0.0.1"] } });
      const url = `${server.url}/orders/17?page=2`;
      const { id } = await book.calls.submit({
        url,
        json: { orderId: "o-17", author: "ada" },
        headers: { "x-trace": "abc" },
      });
      await workAll(book);
      const again = await book.calls.resend(id);

      const { request, attempts, kept } = await book.calls.get(id, { reveal: true });
      assert.deepEqual([kept, request.url, request.body], ["clear", url, '{"author":"ada","orderId":"o-17"}']);
      assert.deepEqual(attempts[0]?.response?.said, {
        headers: { "content-type": "application/json" },
        body: '{"done":true}',
        base64: false,
        hops: [],
      });
      assert.equal((await book.calls.get(id)).request.url, `${server.url}/[hidden]`);
      assert.equal((await book.calls.get(again.id)).kept, "clear");
    });

    test("the worst call and answer that are allowed cost little time of the processor", async (t) => {
      const parts = (of: string): string => of.repeat(65_536 / of.length);
      const answers = [
        parts("\u001B]"),
        parts('{"a":'),
        parts("kanarie "),
        Array.from({ length: 9000 }, String).join(" "),
      ];
      let next = 0;
      const server = await target(t, (_request, response) => {
        response.writeHead(200, { "content-type": "application/json" }).end(answers[next++ % answers.length]);
      });
      for (const key of [testKey, undefined]) {
        const { book } = await openTest(t, backend, {
          calls: { allow: ["127.0.0.1"], ...(key === undefined ? {} : { key }) },
        });
        const url = `${server.url}/${"a1/".repeat(2600)}`;
        const tokens = Array.from({ length: 110_000 }, (_, n) => String(n));
        const begun = process.threadCpuUsage();
        for (const json of [
          { tokens: tokens.slice(0, 49_000) },
          tokens.join(" "),
          tokens.slice(0, 24_000).map((each) => ({ a: each })),
          parts("aB"),
        ]) {
          await book.calls.submit({ url, json });
        }
        await workAll(book);
        for (const { id } of (await book.calls.list()).items) await book.calls.get(id, { reveal: true });

        // Looking for each of the secrets in each of the answers takes half a minute.
        const { user, system } = process.threadCpuUsage(begun);
        assert.ok(user + system < 3_000_000, `${user + system} µs`);
      }
    });

    test("keys can be changed: old calls open with the old one, and a process without it leaves them to others", async (t) => {
      const server = await target(t);
      const { book, url } = await openCalls(t, backend, { views: true, worker: false });
      const { id } = await book.calls.submit({
        url: server.url,
        headers: { authorization: "Bearer abcdefgh" },
        in: "1h",
      });
      await book.close();
      const other = Buffer.alloc(32, 9).toString("hex");
      const without = await openCalls(t, backend, { views: true, url, calls: { key: other } });
      without.clock.step(3_600_000);
      await workAll(without.book);
      assert.deepEqual([(await without.book.calls.get(id)).status, server.received.length], ["scheduled", 0]);
      await without.book.close();

      const rotated = await openCalls(t, backend, { views: true, url, calls: { key: [other, testKey] } });
      rotated.clock.step(3_700_000);
      await workAll(rotated.book);

      assert.deepEqual([(await rotated.book.calls.get(id)).status, server.received.length], ["succeeded", 1]);
      assert.equal(server.received[0]?.headers.authorization, "Bearer abcdefgh");
      const [again] = await rotated.book.read((tx) => tx.sql<{ key_id: string }>`select key_id from daybook_call`);
      assert.notEqual(again?.key_id, null);
    });

    test("everything is sealed anew with the first key, what was in clear too, and then the old key is no longer needed", async (t) => {
      const server = await target(t, inOrder(status(503), ok));
      const clock = manualClock({ at: "2026-01-15T12:00:00Z" });
      const { book: plain, url } = await openTest(t, backend, { calls: { allow: ["127.0.0.1"] }, clock });
      const clear = await plain.calls.submit({ url: `${server.url}/orders`, json: { orderId: "o-17" }, attempts: 2 });
      await plain.calls.submit({ url: `${server.url}/${canary}`, in: "1h" });
      await workAll(plain);
      await plain.close();
      const { book: before } = await openCalls(t, backend, { url, clock });
      const made = await Promise.all(
        [before, before.tenant("acme")].map((of) => of.calls.submit({ url: server.url, json: { canary } })),
      );
      await workAll(before);
      await before.close();
      const fresh = Buffer.alloc(32, 9).toString("base64");
      const { book: ahead } = await openTest(t, backend, { url, clock, calls: { key: fresh } });
      const { missing } = await ahead.reseal();
      await ahead.close();
      const { book } = await openTest(t, backend, { url, clock, calls: { key: [fresh, testKey] } });

      const dry = await book.reseal({ dryRun: true });
      const done = await book.reseal();
      const again = await book.reseal();
      await book.close();

      // The one that was in clear is sealed by the ring that lacks the old key already.
      assert.deepEqual(
        missing.map(({ count }) => count),
        [4],
      );
      assert.deepEqual([dry.dryRun, dry.requests, dry.answers, dry.missing], [true, 2, 2, []]);
      assert.deepEqual(done, { ...dry, dryRun: false });
      assert.deepEqual([again.requests, again.answers], [0, 0]);
      const { book: after } = await openTest(t, backend, { url, clock, calls: { key: fresh } });
      const rows = await after.read(
        (tx) => tx.sql<{ key_id: string; kept: string }>`select key_id, kept from daybook_call
        union select key_id, 'sealed' as kept from daybook_call_attempt where answer is not null`,
      );
      assert.deepEqual(rows, [{ key_id: done.keyId, kept: "sealed" }]);
      assert.ok(!(await allText(after, backend)).includes(canary));
      const revealed = await after.calls.get(clear.id, { reveal: true });
      assert.deepEqual([revealed.kept, revealed.request.body], ["sealed", '{"orderId":"o-17"}']);
      for (const [index, of] of [after, after.tenant("acme")].entries()) {
        const { request, attempts } = await of.calls.get(made[index]?.id ?? "", { reveal: true });
        assert.deepEqual([request.body, attempts[0]?.response?.said?.body], [JSON.stringify({ canary }), "ok"]);
      }
    });

    test("two that seal anew at once do not disturb each other, what was tampered with is passed over, and without a key it is refused", async (t) => {
      const server = await target(t);
      const { book: first, url } = await openCalls(t, backend);
      for (let n = 0; n < 250; n++) await first.calls.submit({ url: server.url, in: "1h", json: { n } });
      await first.close();
      const fresh = Buffer.alloc(32, 9).toString("base64");
      const { book } = await openTest(t, backend, { url, calls: { key: [fresh, testKey] } });
      await tamper(book, (tx) => tx.sql`update daybook_call set content = content || 'x' where seq = 7`);
      const both = await Promise.all([book.reseal(), book.reseal()]);
      const { book: without } = await openTest(t, backend, { url: await bookUrl(t, backend) });

      const counts = both.flatMap(({ missing }) => missing.map(({ count }) => count));
      assert.deepEqual(counts, [1, 1]);
      // The second passes over what the first has done by then.
      assert.ok(both.every(({ requests }) => requests <= 249) && both[0].requests + both[1].requests >= 249);
      assert.deepEqual((await book.reseal()).requests, 0);
      await assert.rejects(without.reseal({ dryRun: true }), /there is no key to seal with: give the new one/);
    });

    test("the same key and request return the same call, another request is refused, and tenants are separate", async (t) => {
      const { book } = await openCalls(t, backend, { views: true, worker: false });
      const submit = (of: Book, n: number) =>
        of.calls.submit({ url: "https://a.example/", json: { n, token: "t-12345678" }, idempotencyKey: "k" });
      const first = await submit(book, 1);

      assert.deepEqual(await submit(book, 1), { ...first, created: false });
      await assert.rejects(submit(book, 2), (error: Error) => error.message.includes(`belongs to call ${first.id}`));
      const other = await submit(book.tenant("acme"), 2);
      assert.equal(other.created, true);
    });

    test("every attempt is signed by Standard Webhooks with every secret and has the same id", async (t) => {
      const server = await target(t, status(503));
      const { book, clock } = await openCalls(t, backend, { views: true });
      const [fresh, old] = [`whsec_${Buffer.alloc(24, 1).toString("base64")}`, "an old secret of ours"];
      const { id } = await book.calls.submit({ url: server.url, json: { a: 1 }, secret: [fresh, old], retry: ["1s"] });
      await workAll(book);
      clock.step(1000);
      await workAll(book);

      assert.equal(server.received.length, 2);
      for (const { headers, body } of server.received) {
        const signed = `${id}.${String(headers["webhook-timestamp"])}.${body}`;
        const by = (key: Buffer | string): string => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
        assert.equal(headers["webhook-id"], id);
        assert.equal(headers["webhook-signature"], `${by(Buffer.alloc(24, 1))} ${by(old)}`);
      }
      assert.notEqual(...(server.received.map(({ headers }) => headers["webhook-timestamp"]) as [string, string]));
    });
  });
}
