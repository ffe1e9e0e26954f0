import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { app, event, job, listener, open, type Book, type JobRecord, type OpenOptions } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const settings = {
  queue: "mail",
  priority: 7,
  attempts: 1,
  timeout: "30s",
  losses: 1,
  concurrency: 2,
  backoff: ["1s", "1m"],
  rate: { max: 10, per: "1m" },
} as const;
const send = job("send", {
  params: z.object({ to: z.string(), copies: z.int().default(1) }),
  ...settings,
  run: () => 1,
});
const plain = job("plain", { run: () => 1 });

type Row = Record<string, unknown>;
const definitions = (book: Book): Promise<Row[]> =>
  book.read((tx) => tx.sql<Row>`select * from daybook_definition order by name`);
const limitsOf = async (book: Book, id: string): Promise<Row> => {
  const [row] = await book.read(
    (tx) => tx.sql<Row>`select limits, limit_key, backoff, timeout_ms, losses_max from daybook_job where id = ${id}`,
  );
  return row ?? {};
};
const settingsOf = ({ queue, priority, attempts }: JobRecord): unknown[] => [queue, priority, attempts];
const asDefined = ["mail", 7, 1];

/** Hosts them and is gone again, as a program of yesterday. */
async function host(url: string, ...use: NonNullable<OpenOptions["use"]>): Promise<void> {
  await using book = await open(url, { use });
  await (await book.startWorker({ queues: ["none"] })).stop();
}

for (const backend of backends) {
  describe(backend, () => {
    test("a job enqueued by name gets the settings of the program that runs it", async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      await host(url, send);

      const made = await book.jobs.enqueue("send", { to: "ada" });
      const inTx = await book.write((tx) => tx.jobs.enqueue("send", { to: "ada" }));
      const [first, second] = await book.jobs.enqueueMany("send", [{ to: "bob" }, { to: "eve" }], { priority: 9 });

      assert.deepEqual(settingsOf(await book.jobs.get(made.id)), asDefined);
      assert.deepEqual(settingsOf(await book.jobs.get(inTx.id)), asDefined);
      assert.deepEqual(settingsOf(await book.jobs.get(first?.id ?? "")), ["mail", 9, 1]);
      assert.deepEqual([made.warning, inTx.warning, second?.warning], [undefined, undefined, undefined]);
      const kept = await limitsOf(book, made.id);
      const inHand = await limitsOf(book, (await book.jobs.enqueue(send, { to: "ada" })).id);
      assert.deepEqual(kept, inHand);
      assert.deepEqual([kept["backoff"], kept["timeout_ms"], kept["losses_max"]], ['["1s","1m"]', 30_000, 1]);
      assert.match(String(kept["limits"]), /"name":2.*"max":10,"ms":60000/);
    });

    test("a template, a group and a schedule by name get the settings of the program that runs it", async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      await host(url, send);

      await book.templates.create("letter", { job: "send", params: { to: "ada" }, priority: 3 });
      const templated = await book.jobs.enqueueFrom("letter");
      const group = await book.groups.create({ mode: "parallel" }, (to) => to.add("send", { to: "bob" }));
      const added = await book.groups.add(group.id, "send", { to: "eve" });
      const daily = await book.schedules.create("daily", { daily: "07:00", job: "send", params: { to: "ada" } });
      await book.schedules.trigger("daily");
      const lettered = await book.schedules.create("lettered", { daily: "07:00", template: "letter" });
      await book.schedules.trigger("lettered");

      const { items } = await book.jobs.list();
      assert.deepEqual(settingsOf(await book.jobs.get(templated.id)), ["mail", 3, 1]);
      assert.deepEqual(settingsOf(await book.jobs.get(group.jobs[0]?.id ?? "")), asDefined);
      assert.deepEqual(settingsOf(await book.jobs.get(added.id)), asDefined);
      assert.deepEqual([daily.warning, lettered.warning], [null, null]);
      assert.deepEqual(
        items.map((each) => each.attempts),
        [1, 1, 1, 1, 1],
      );
    });

    test("a schedule that was made before its job was hosted fires it with the settings it has by then", async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      const made = await book.schedules.create("early", {
        daily: "07:00",
        job: "send",
        params: { to: "ada" },
        priority: 2,
      });
      await book.schedules.trigger("early");

      await host(url, send);
      await book.schedules.trigger("early");

      assert.match(made.warning ?? "", /"send" was never hosted by this book/);
      const { items } = await book.jobs.list();
      assert.deepEqual(
        items.map(settingsOf).toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
        [
          ["default", 2, 4],
          ["mail", 2, 1],
        ],
      );
    });

    test("a name that was never hosted gets the defaults, and the answer says so", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });

      const made = await book.jobs.enqueue("sned", { to: "ada" });
      const group = await book.groups.create({ mode: "parallel" }, (to) => to.add("sned"));

      const warning = 'job "sned" was never hosted by this book: it waits for a program that lists it';
      assert.deepEqual([made.warning, group.jobs[0]?.warning], [warning, warning]);
      assert.deepEqual(settingsOf(await book.jobs.get(made.id)), ["default", 0, 4]);
    });

    test("where jobs are run, a name that is neither in use nor in the book is refused with the nearest one", async (t) => {
      const { book, url } = await openTest(t, backend, { use: [plain] });
      await host(url, send);

      const byName = await book.jobs.enqueue("send", { to: "ada" });
      const inHand = await book.jobs.enqueue(job("send", { attempts: 3, run: () => 1 }));

      await assert.rejects(book.jobs.enqueue("sendd"), { code: "invalid", message: /did you mean "send"/ });
      await assert.rejects(book.jobs.enqueue(job("other", { run: () => 1 })), { code: "invalid" });
      await assert.rejects(book.jobs.runNow("send", { to: "ada" }), {
        code: "invalid",
        message: /does not know the job "send"/,
      });
      assert.deepEqual(settingsOf(await book.jobs.get(byName.id)), asDefined);
      assert.deepEqual(settingsOf(await book.jobs.get(inHand.id)), ["default", 0, 3]);
    });

    test("params that do not fit the schema of a hosted job are refused by name too", async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      await host(url, send, plain);

      await assert.rejects(book.jobs.enqueue("send", { copies: "two" }), (error: Error) => {
        assert.match(error.message, /to: is missing/);
        assert.match(error.message, /copies: is string, not integer/);
        return true;
      });
      const made = await book.jobs.enqueue("send", { to: "ada", copies: 2, more: true });
      await assert.rejects(book.jobs.edit(made.id, { to: 5 }), { code: "invalid" });
      await book.jobs.edit(made.id, { to: "bob" });
      await book.jobs.enqueue("plain", ["anything"]);

      assert.deepEqual((await book.jobs.get(made.id)).params, { to: "bob" });
    });

    test("a limit that goes by a key is not counted for a job by name, and the answer says so", async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      const byCustomer = job<{ customer: string }>("charge", {
        concurrency: 5,
        limit: { key: ({ customer }) => customer, concurrency: 1 },
        rate: { max: 3, per: "1s", key: ({ customer }) => customer },
        run: () => 1,
      });
      await host(url, byCustomer);

      const made = await book.jobs.enqueue("charge", { customer: "ada" });

      assert.match(made.warning ?? "", /the limit and the rate of job "charge" goes by a key/);
      assert.deepEqual(await limitsOf(book, made.id), {
        limits: '{"name":5}',
        limit_key: null,
        backoff: null,
        timeout_ms: null,
        losses_max: 3,
      });
    });

    test("the last program that begins to host a job decides, and one that says the same writes nothing", async (t) => {
      const { book, url } = await openTest(t, backend, { worker: false });
      await host(url, send, plain);
      const before = await definitions(book);

      await host(url, send, plain);
      const same = await definitions(book);
      await host(url, job("send", { ...settings, attempts: 9, run: () => 1 }), plain);
      const after = await definitions(book);

      assert.deepEqual(same, before);
      assert.deepEqual(
        after.map((row) => row["attempts"]),
        [4, 9],
      );
      assert.deepEqual(after[0], before[0]);
      assert.equal(after[1]?.["params_schema"], null);
      assert.notEqual(after[1]?.["session_seq"], before[1]?.["session_seq"]);
      assert.equal(after[1]?.["hosted_at"], before[1]?.["hosted_at"]);
    });

    test("a program that does not work hosts nothing, and deliveries and calls are not written", async (t) => {
      const paid = event("paid");
      const heard = listener("heard", { on: paid, run: () => undefined });
      const { book, url } = await openTest(t, backend, { use: [send] });
      assert.deepEqual(await definitions(book), []);

      await host(url, plain, heard);

      assert.deepEqual(
        (await definitions(book)).map((row) => row["name"]),
        ["plain"],
      );
    });

    test("a job of an app that is enqueued by name belongs to the app", async (t) => {
      const shop = app("shop", {
        setup(it) {
          it.job({ name: "tick", attempts: 2 }, () => undefined);
        },
      });
      const { book, url } = await openTest(t, backend, { worker: false });
      {
        await using hosting = await open(url, { use: [shop] });
        assert.equal(hosting.tenantId, "default");
      }

      const [row] = await definitions(book);
      const made = await book.jobs.enqueue(String(row?.["name"]));

      const [kept] = await book.read(
        (tx) => tx.sql<Row>`select app, registration, attempts from daybook_job where id = ${made.id}`,
      );
      assert.deepEqual(kept, { app: "shop", registration: "tick", attempts: 2 });
    });
  });
}
