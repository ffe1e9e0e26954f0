import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { dirname, join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { Client } from "pg";
import { listener, type Book } from "../../src/index.ts";
import { openCalls, status, target, testKey, workAll } from "../calls/target.ts";
import { runCli } from "../cli/run-cli.ts";
import { allText } from "../support/book-text.ts";
import { backends, cleanup, openTest } from "../support/open-test.ts";

const canary = "kanarie-5f1c9e77";

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
    test("no secret of a request or its answer is in any table, file, fact, error, metric or output", async (t) => {
      const said: unknown[] = [];
      const hear = (message: unknown): void => void said.push(message);
      for (const channel of ["daybook:call.changed", "daybook:call.refused", "daybook:job.settled"]) {
        subscribe(channel, hear);
        t.after(() => unsubscribe(channel, hear));
      }
      // A server that repeats everything it is sent, as many do.
      const server = await target(t, ({ headers, path, body }, response) => {
        response.writeHead(path.startsWith("/bad") ? 400 : path.startsWith("/moved") ? 302 : 200, {
          "content-type": "application/json",
          "set-cookie": `session=${canary}-cookie`,
          location: `/next?token=${canary}-loc`,
          "x-echo": headers.authorization ?? "",
        });
        response.end(
          JSON.stringify({
            headers,
            path,
            body,
            text: `a new session=${canary}-cookie;`,
            token: `${canary}-answer`,
            user: { password: `${canary}-pw` },
          }),
        );
      });
      // What happens to calls is kept as events too, with the beginning of the answer.
      const tells = listener("tells", { on: "call.>", run: (payload) => void said.push(payload) });
      const { book, url } = await openCalls(t, backend, { views: true, use: [tells] });
      const from = await walPosition(t, url, backend);
      const request = {
        headers: {
          Authorization: `Bearer ${canary}-auth`,
          Cookie: `sid=${canary}-cookie`,
          "X-Custom": `${canary}-custom`,
        },
        json: { orderId: "o-17", password: `${canary}-field`, deep: [{ apiKey: `${canary}-deep` }] },
        secret: `whsec_${Buffer.from(`${canary}-secret`).toString("base64")}`,
      };
      const made = [];
      for (const path of ["ok", "bad", "moved"]) {
        const to = `${server.url}/${path}?access_token=${canary}-query&page=2`;
        made.push(await book.calls.submit({ url: to, ...request, redirects: 1, idempotencyKey: path }));
      }
      const nobody = `http://127.0.0.1:1/?sig=${canary}-nobody`;
      await book.calls.submit({ url: nobody, ...request });
      const other = book.tenant("other");
      const later = await other.calls.submit({ url: `${server.url}/other`, ...request, in: "1h" });
      const refused = [
        () => book.calls.submit({ url: server.url, json: { token: `${canary}-2` }, idempotencyKey: "ok" }),
        () => book.calls.submit({ url: `http://u:${canary}@example.com/` }),
        () => book.calls.submit({ url: server.url, json: { token: `${canary}-3` }, secret: `${canary}`.slice(0, 8) }),
        () => book.calls.submit({ url: server.url, headers: { cookie: `${canary}-4`, Cookie: `${canary}-5` } }),
      ];
      for (const each of refused) await assert.rejects(each, (error) => said.push(inspect(error, { depth: 9 })) > 0);
      await book.calls.submit({
        url: `${server.url}/form`,
        body: `user=ada&password=${canary}-form`,
        headers: {
          "content-type": "application/x-www-form-urlencoded",
        },
      });
      await book.calls.submit({ url: `${server.url}/opaque`, body: `${canary}-opaque` });
      await book.calls
        .submit({ url: `https://10.0.0.1/?key=${canary}-refused` })
        .catch((error: unknown) => said.push(String(error)));
      await book.calls
        .submit({ url: server.url, headers: { authorization: `${canary}\n` } })
        .catch((error: unknown) => said.push(String(error)));
      await workAll(book);

      assert.equal(server.received.length, 6);
      const sent = server.received.find(({ path }) => path.startsWith("/ok"));
      assert.match(sent?.headers.authorization ?? "", /^Bearer kanarie/);
      const records = await Promise.all(made.map(({ id }) => book.calls.get(id)));
      assert.deepEqual(
        records.map((each) => each.status),
        ["succeeded", "failed", "succeeded"],
      );
      assert.match(records[2]?.attempts[0]?.hops[0] ?? "", /next\?token=\[redacted\]$/);
      assert.match(records[0]?.request.url ?? "", /access_token=\[redacted\]&page=2$/);
      assert.match(records[0]?.request.body ?? "", /"orderId":"o-17"/);
      const [first = ""] = made.map(({ id }) => id);
      const commands: readonly (readonly string[])[] = [
        ...[
          ["calls", "show", first],
          ["calls", "show", first, "--json"],
          ["calls", "curl", first],
        ],
        ...[
          ["calls", "list"],
          ["runs", "list", "--json"],
          ["errors", "--json"],
          ["events", "list", "--json"],
        ],
        ["jobs", "list", "--json"],
      ];
      const printed = await Promise.all(
        commands.map((args) => runCli([...args, "--book", url], { env: { DAYBOOK_KEY: testKey } })),
      );
      for (const [index, { code }] of printed.entries()) assert.equal(code, 0, commands[index]?.join(" ") ?? "");
      for (const text of [
        ...[await allText(book, backend), inspect(said, { depth: 9, maxStringLength: null }), await book.metrics()],
        ...[
          JSON.stringify(records),
          JSON.stringify(await book.calls.list()),
          JSON.stringify(await book.jobs.list({ kind: "all" })),
        ],
        JSON.stringify(await other.calls.get(later.id)),
        ...printed.map(({ stdout, stderr }) => stdout + stderr),
      ]) {
        assert.ok(text.length > 10);
        assert.ok(
          !text.includes(canary),
          text.slice(Math.max(0, text.indexOf(canary) - 300), text.indexOf(canary) + 60),
        );
      }
      const files = await filesOf(book, url, from);
      assert.ok(files.some((file) => backend === "postgres" || file.endsWith("-wal")));
      for (const file of files) {
        const bytes = readFileSync(file);
        for (const form of [canary, Buffer.from(canary).toString("base64").slice(0, 12)]) {
          assert.equal(bytes.indexOf(form), -1, file);
        }
      }
      // What is looked for would be found: the harmless part of the same requests is in these files.
      assert.ok(files.some((file) => readFileSync(file).includes("o-17")));
    });

    test("without a key, a request with a secret is refused with advice", async (t) => {
      const server = await target(t);
      const calls = { allow: ["127.0.0.1"] };
      const { book } = await openTest(t, backend, { calls });
      for (const [bad, what] of [
        [{ headers: { Authorization: "Bearer x" } }, /the header "authorization"/],
        [{ headers: { "X-Api-Key": "x" } }, /the header "x-api-key"/],
        [{ url: `${server.url}?access_token=x` }, /the query parameter "access_token"/],
        [{ json: { user: { password: "x" } } }, /the body's field "password"/],
        [{ secret: "a secret of sixteen" }, /a webhook secret/],
      ] as const) {
        await assert.rejects(book.calls.submit({ url: server.url, ...bad }), (error: Error) => {
          assert.match(error.message, what);
          assert.match(error.message, /DAYBOOK_KEY/);
          return true;
        });
      }
      const { id } = await book.calls.submit({ url: server.url, json: { author: "ada", max_tokens: 5 } });
      await workAll(book);
      const { status: state, sealed } = await book.calls.get(id);
      assert.deepEqual([state, sealed, server.received.length], ["succeeded", false, 1]);
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

    test("a secret that looks like JSON is cut out without breaking what is kept", async (t) => {
      const server = await target(t, (_request, response) => void response.writeHead(503, { age: "5" }).end());
      const { book } = await openCalls(t, backend, { views: true });
      const headers = { "x-evil": '","date":', "x-other": '"age":"5"' };
      const { id } = await book.calls.submit({ url: server.url, headers });
      await workAll(book);

      const { status: state, outcome, attempts } = await book.calls.get(id);
      assert.deepEqual([state, outcome?.responseStatus, attempts[0]?.response?.headers["age"]], ["failed", 503, "5"]);
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
