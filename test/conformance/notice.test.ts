// A notice: a webhook that is told of an end, by a call of the same commit.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { job, type Book, type CloudEvent, type JobEndedPayload, type Notice } from "../../src/index.ts";
import { openCalls, target, testKey, workAll } from "../calls/target.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { sql } from "../../src/storage/sql.ts";
import { allText } from "../support/book-text.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

type End = "completed" | "failed" | "cancelled" | "skipped";

const told = async (book: Book): Promise<string[]> =>
  (await book.calls.list({ tags: { any: ["notice"] } })).items.map(({ name }) => name).toSorted();

for (const backend of backends) {
  describe(backend, () => {
    const failing = (notify: Notice<End>, attempts = 1) =>
      job("fail", { attempts, backoff: ["0s"], notify, run: () => Promise.reject(new Error("no paper")) });

    test("a job that fails for good tells the webhook of its definition, once, signed and with its headers", async (t) => {
      const server = await target(t);
      const secret = "a secret of both sides";
      const headers = { authorization: "Bearer abc123" };
      const fail = failing({ on: ["failed"], webhook: { url: server.url, secret, headers } }, 2);
      const { book } = await openCalls(t, backend, { use: [fail] });

      const { id } = await book.jobs.enqueue(fail, {});
      await workAll(book);

      const [message] = server.received.map(({ body }) => JSON.parse(body) as CloudEvent);
      const [call] = (await book.calls.list()).items;
      const last = message?.data as JobEndedPayload;
      assert.equal(server.received.length, 1);
      assert.deepEqual([message?.type, message?.source, message?.id], ["job.failed", "daybook:default", call?.id]);
      assert.deepEqual(
        [message?.subject, last.attempt, last.run?.error?.message],
        [(await book.jobs.chain(id)).at(-1)?.id, 2, "no paper"],
      );
      const sent = server.received[0]?.headers ?? {};
      assert.deepEqual(
        [sent["authorization"], sent["content-type"], sent["idempotency-key"]],
        ["Bearer abc123", "application/cloudevents+json", call?.id],
      );
      assert.match(String(sent["webhook-signature"]), /^v1,/);
      assert.equal(call?.correlationId, (await book.jobs.chain(id)).at(-1)?.run?.id);
      // It is a call like any other, and can be sent again.
      await book.calls.resend(call?.id ?? "");
      await workAll(book);
      assert.equal(server.received[1]?.body, server.received[0]?.body);
      assert.deepEqual(await book.doctor(), []);
    });

    test("only the ends that are named are told, success as well", async (t) => {
      const webhook = { url: "http://127.0.0.1:1/" };
      const done = job("done", { notify: { on: ["completed", "cancelled"], webhook }, run: () => undefined });
      const quiet = job("quiet", { run: () => undefined });
      const { book } = await openCalls(t, backend, {
        use: [done, quiet, failing({ on: ["completed"], webhook })],
      });
      for (const each of [done, quiet]) await book.jobs.enqueue(each, {});
      await book.jobs.enqueue("fail", {});
      const later = await book.jobs.enqueue(done, {}, { in: "1h" });
      const worker = await book.startWorker();
      await worker.idle();

      await book.jobs.cancel(later.id);

      assert.deepEqual(await told(book), ["job.cancelled done", "job.completed done"]);
    });

    test("an end that is undone tells nothing, and one that another process brings about is told without the key", async (t) => {
      const secret = "a secret of both sides";
      const webhook = { url: "http://127.0.0.1:1/", secret };
      const stuck = job("stuck", { notify: { on: ["cancelled"], webhook }, run: () => undefined });
      const { book, clock, url } = await openCalls(t, backend, { use: [stuck] });
      await (await book.startWorker()).stop();
      const { id } = await book.tenant("acme").jobs.enqueue(stuck, {});
      const { book: operator } = await openTest(t, backend, { url, clock, worker: false });

      const undone = operator.tenant("acme").write(async (tx) => {
        await tx.jobs.cancel(id);
        throw new Error("no");
      });
      await assert.rejects(undone, /no/);
      assert.deepEqual(await told(book.tenant("acme")), []);
      await operator.tenant("acme").jobs.cancel(id);

      assert.deepEqual(await told(book.tenant("acme")), ["job.cancelled stuck"]);
      assert.deepEqual(await told(book), []);
    });

    test("recovery, a timeout and a skip are ends like any other", async (t) => {
      const webhook = { url: "http://127.0.0.1:1/" };
      const notify = { on: ["failed", "skipped"], webhook } as const;
      const begun = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      const lost = job("lost", {
        losses: 0,
        notify,
        run: () => {
          begun.resolve();
          return gate.promise;
        },
      });
      const slow = job("slow", {
        attempts: 1,
        timeout: "1s",
        notify,
        run: (_params: unknown, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)),
      });
      const skipped = job("skipped", { notify, run: () => undefined });
      const { book, clock, url } = await openCalls(t, backend, { use: [lost, slow, skipped] });
      const { book: operator } = await openTest(t, backend, { url, clock, worker: false });
      await book.groups.create({ mode: "sequential", onFailure: "skip" }, (group) => {
        group.add(slow, {});
        group.add(skipped, {});
      });
      const worker = await book.startWorker();
      while ((await book.jobs.list({ name: "slow", status: "running" })).items.length === 0) await clock.nextTurn();
      await clock.advance(1000);
      while ((await told(book)).length < 2) await clock.nextTurn();
      await book.jobs.enqueue(lost, {});
      await begun.promise;

      await roomsOf(operator).store.write((tx) =>
        tx.run(sql`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at
          where seq in (select session_seq from daybook_line where status = 'running')`),
      );
      await operator.jobs.recover();

      assert.deepEqual(await told(operator), ["job.failed lost", "job.failed slow", "job.skipped skipped"]);
      gate.resolve();
      await worker.stop();
    });

    test("a template's own notice stands in for its definition's, and can be taken back", async (t) => {
      const server = await target(t);
      const fail = failing({ on: ["failed"], webhook: { url: `${server.url}/definition` } });
      const { book } = await openCalls(t, backend, { use: [fail] });
      const notify = { on: ["failed"], webhook: { url: `${server.url}/template?x=1` } } as const;
      const made = await book.templates.create("nightly", { job: fail, notify });

      await book.jobs.enqueueFrom("nightly");
      await workAll(book);
      await book.templates.edit("nightly", { notify: null });
      await book.jobs.enqueueFrom("nightly");
      await workAll(book);

      assert.deepEqual(
        server.received.map(({ path }) => path),
        ["/template?x=1", "/definition"],
      );
      assert.deepEqual(made.notify?.on, ["failed"]);
      assert.equal((await book.templates.get("nightly")).notify, null);
    });

    test("a group tells how it ended, whatever its jobs say", async (t) => {
      const server = await target(t);
      const fail = failing({ on: ["completed"], webhook: { url: server.url } });
      const { book } = await openCalls(t, backend, { use: [fail] });
      const notify = { on: ["failed", "partial"], webhook: { url: server.url } } as const;

      const { id } = await book.groups.create({ name: "import", mode: "sequential", notify }, (group) => {
        group.add(fail, {});
        group.add(fail, {});
      });
      await workAll(book);

      const messages = server.received.map(({ body }) => JSON.parse(body) as CloudEvent);
      assert.deepEqual(
        messages.map(({ type, subject, data }) => [type, subject, data]),
        [["group.failed", id, { id, name: "import", status: "failed" }]],
      );
      assert.deepEqual((await book.groups.get(id)).notify?.on, ["failed", "partial"]);
    });

    test("a notice is checked where it is written, and its secrets are kept sealed or not at all", async (t) => {
      const webhook = { url: "https://hooks.example/x" };
      const wrong: readonly [unknown, RegExp][] = [
        [{ on: [], webhook }, /give a list of ends/],
        [{ on: ["ended"], webhook }, /"ended" is not known/],
        [{ on: "failed", webhook }, /give a list of ends/],
        [{ on: ["failed"], webhook: { url: "ftp://x/" } }, /by http and https/],
        [{ on: ["failed"], webhook, url: "x" }, /unknown option "url"/],
        [{ on: ["failed"], webhook: { ...webhook, headers: new Map([["a", "b"]]) } }, /headers are/],
        [{ on: ["failed"] }, /webhook/],
        [Promise.resolve(), /a promise/],
      ];
      for (const [notify, why] of wrong) {
        assert.throws(() => job("x", { notify: notify as never, run: () => undefined }), {
          code: "invalid",
          message: why,
        });
      }
      const { book, url } = await openCalls(t, backend, { use: [failing({ on: ["failed"], webhook })] });
      for (const [notify, why] of wrong) {
        await assert.rejects(book.templates.create("t", { job: "fail", notify: notify as never }), { message: why });
      }
      const secret = "whsec_bm90IHRvIGJlIHNlZW4gYnkgYW55Ym9keQ==";
      await book.templates.create("t", {
        job: "fail",
        notify: { on: ["failed"], webhook: { ...webhook, secret, headers: { "x-api-key": "canary-17" } } },
      });

      const [row] = await book.read((tx) => tx.sql<{ notify: string }>`select notify from daybook_job_template`);

      assert.doesNotMatch(row?.notify ?? "", /canary-17|whsec|bm90/);
      if (backend === "sqlite") assert.doesNotMatch(readFileSync(url, "latin1"), /canary-17|bm90IHRv/);
      assert.equal((await book.templates.get("t")).notify?.to, "https://hooks.example/[hidden]");
    });

    test("sealed anew with the first key, notices and the calls made of them need the old key no more, and stay their tenant's", async (t) => {
      const server = await target(t);
      const notice = (path: string) =>
        ({
          on: ["cancelled"],
          webhook: { url: server.url + path, headers: { authorization: "Bearer abc123" } },
        }) as const;
      const stuck = job("stuck", { notify: notice("/definition"), run: () => undefined });
      const { book: before, clock, url } = await openCalls(t, backend, { use: [stuck] });
      await workAll(before);
      const acme = before.tenant("acme");
      for (const id of ["own", "moved"]) await acme.templates.create(id, { job: stuck, notify: notice(`/${id}`) });
      const group = await acme.groups.create({ mode: "parallel", notify: notice("/group") }, (add) => add.add(stuck));
      const jobs = [await acme.jobs.enqueueFrom("own"), await acme.jobs.enqueueFrom("moved")];
      await before.jobs.cancel((await before.jobs.enqueue(stuck, {})).id);
      await before.close();
      const fresh = Buffer.alloc(32, 9).toString("base64");
      const calls = (...key: string[]) => ({ url, clock, calls: { key, allow: ["127.0.0.0/8"] } });
      const { book: ahead } = await openTest(t, backend, calls(fresh));
      const { missing } = await ahead.reseal();
      await ahead.close();
      const { book: both } = await openTest(t, backend, calls(fresh, testKey));

      const dry = await both.reseal({ dryRun: true });
      const done = await both.reseal();
      const again = await both.reseal({ dryRun: true });
      await both.close();

      const found = { requests: 1, answers: 0, notices: 4, missing: [] };
      assert.deepEqual(dry, { ...found, dryRun: true, keyId: done.keyId });
      assert.deepEqual(done, { ...dry, dryRun: false });
      assert.deepEqual(again, { ...dry, requests: 0, notices: 0 });
      assert.deepEqual([missing.length, missing[0]?.count], [1, 5]);
      const { book } = await openTest(t, backend, calls(fresh));
      assert.ok(!(await allText(book, backend)).includes(missing[0]?.keyId ?? ""));
      // What says that any tenant's calls can be made of it does not open.
      await tamper(
        book,
        (tx) => tx.sql`update daybook_job_template
        set notify = replace(notify, ${'"whose":"acme"'}, ${'"whose":"*"'}) where name = 'moved'`,
      );
      for (const { id } of jobs) await book.tenant("acme").jobs.cancel(id);
      await book.tenant("acme").groups.cancel(group.id);
      await workAll(book);
      assert.deepEqual(
        server.received.map(({ path, headers }) => `${path} ${headers.authorization}`).toSorted(),
        ["/definition", "/definition", "/group", "/own"].map((path) => `${path} Bearer abc123`),
      );
      assert.equal((await book.tenant("acme").calls.list({ status: "failed" })).items.length, 1);
    });

    test("without a key a webhook whose address or header may be a secret is refused, and nothing of it is in the book", async (t) => {
      const stuck = job("stuck", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [stuck], calls: {} });
      const secrets = [
        { url: "https://chat.example/services/T0AB/B1CD/canary77Xy" },
        { url: "https://ops.example/hook?pass=canary" },
        { url: "https://ops.example/hook", headers: { "x-tenant": "canary77Xy" } },
      ];

      for (const webhook of secrets) {
        const notify = { on: ["failed"], webhook } as const;
        const refused = { code: "invalid", message: /webhook at \S+ may be a secret.*DAYBOOK_KEY/ };
        await assert.rejects(book.templates.create("t", { job: stuck, notify }), refused);
        await assert.rejects(
          book.groups.create({ mode: "parallel", notify }, (add) => add.add("stuck")),
          refused,
        );
      }

      assert.ok(!(await allText(book, backend)).includes("canary"));
    });

    test("notices that were written without a key are sealed with the first one, and so are the calls made of them", async (t) => {
      const server = await target(t);
      const allow = ["127.0.0.0/8"];
      const webhook = { url: `${server.url}/canary` };
      const stuck = job("stuck", { notify: { on: ["cancelled"], webhook }, run: () => undefined });
      const { book: plain, url } = await openTest(t, backend, { use: [stuck], calls: { allow } });
      await workAll(plain);
      await plain.jobs.cancel((await plain.jobs.enqueue(stuck, {})).id);
      // More than one slice of them.
      await plain.write(async (tx) => {
        const notify = { on: ["failed"], webhook } as const;
        for (let n = 0; n < 101; n++) await tx.templates.create(`t-${n}`, { job: stuck, notify });
      });
      assert.ok((await allText(plain, backend)).includes("canary"));
      await plain.close();
      const { book } = await openTest(t, backend, { url, calls: { key: testKey, allow } });

      const { requests, notices } = await book.reseal();

      assert.deepEqual([requests, notices], [1, 102]);
      assert.ok(!(await allText(book, backend)).includes("canary"));
      await workAll(book);
      assert.deepEqual(
        server.received.map(({ path }) => path),
        ["/canary"],
      );
      assert.equal((await book.calls.list()).items[0]?.kept, "sealed");
    });

    test("many ends of one transaction are told in as many statements as one", async (t) => {
      const webhook = { url: "http://127.0.0.1:1/" };
      const stuck = job("stuck", { notify: { on: ["cancelled"], webhook }, run: () => undefined });
      let written: string[] = [];
      const { book } = await openCalls(t, backend, {
        use: [stuck],
        fault: (moment, text) => void (moment === "before" && written.push(text)),
      });
      await workAll(book);
      const cancelAll = async (count: number): Promise<number> => {
        const { id } = await book.groups.create({ mode: "parallel" }, (group) => {
          for (let n = 0; n < count; n++) group.add(stuck, {});
        });
        written = [];
        await book.groups.cancel(id);
        return written.filter((text) => /^\s*(?:insert|with .*insert)/s.test(text)).length;
      };
      await cancelAll(1);

      const [ofOne, ofMany] = [await cancelAll(1), await cancelAll(50)];

      assert.equal(ofMany, ofOne);
      const counted = await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_call_tag`);
      assert.equal(counted[0]?.n, 52);
      assert.deepEqual(await book.doctor(), []);
    });

    test("notices take nothing of the calls that a tenant may submit", async (t) => {
      const webhook = { url: "http://127.0.0.1:1/" };
      const stuck = job("stuck", { notify: { on: ["cancelled"], webhook }, run: () => undefined });
      const { book } = await openCalls(t, backend, { use: [stuck], calls: { queuedMax: 2 } });
      await (await book.startWorker({ queues: ["none"] })).stop();
      for (let n = 0; n < 4; n++) await book.jobs.cancel((await book.jobs.enqueue(stuck, {})).id);
      const submit = () => book.calls.submit({ url: "https://stock.example/" });

      await submit();
      await submit();

      await assert.rejects(submit(), { code: "conflict", message: /2 calls have not ended/ });
      assert.equal((await told(book)).length, 4);
    });

    test("a notice that says the same stays as it is kept, and a process without the key leaves it sealed", async (t) => {
      const secret = "https://chat.example/services/T0AB/B1CD/canary77Xy";
      const stuck = (url: string, headers = {}) =>
        job("stuck", { notify: { on: ["failed"], webhook: { url, headers } }, run: () => undefined });
      const { book: first, url, clock } = await openCalls(t, backend, { use: [stuck(secret)] });
      const kept = async (book: Book) => {
        await (await book.startWorker()).stop();
        const [row] = await book.read(
          (tx) => tx.sql<{ notify: string; updated_at: number }>`select notify, updated_at from daybook_definition`,
        );
        return { ...row, to: (JSON.parse(row?.notify ?? "{}") as { to?: string }).to };
      };
      const begun = await kept(first);
      const hosting = async (key: readonly string[] | undefined, webhook: string, headers = {}) => {
        await clock.advance("1m");
        const calls = { ...(key === undefined ? {} : { key }), allow: ["127.0.0.0/8"] };
        const { book } = await openTest(t, backend, { use: [stuck(webhook, headers)], url, clock, calls });
        return kept(book);
      };
      const other = Buffer.alloc(32, 9).toString("base64");

      assert.deepEqual(await hosting([testKey], secret), begun);
      assert.deepEqual(await hosting([other, testKey], secret), begun);
      assert.deepEqual(await hosting(undefined, secret), begun);

      // What another program says is written: here another path, which only who has the key can tell, and another host.
      const changed = await hosting([testKey], "https://chat.example/services/T0AB/B1CD/other");
      assert.notEqual(changed.notify, begun.notify);
      assert.equal((await hosting(undefined, "https://plain.example/")).to, "https://plain.example/");
      await assert.rejects(hosting(undefined, secret, { "x-tenant": "canary" }), { message: /may be a secret/ });
    });
  });
}
