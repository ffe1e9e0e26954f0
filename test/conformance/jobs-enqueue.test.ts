import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { job, manualClock, type Book, type Enqueued, type JobRecord } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const at = Date.UTC(2026, 5, 1);
const mail = job("mail", {
  params: z.object({ to: z.string(), copies: z.number().default(1) }),
  run: ({ to, copies }) => `${to} × ${copies}`,
});
const plain = job("plain", { run: () => undefined });
const tuned = job("tuned", {
  queue: "slow",
  priority: 7,
  attempts: 2,
  losses: 1,
  timeout: "10s",
  run: () => undefined,
  backoff: ["1s"],
});
const use = [mail, plain, tuned];

for (const backend of backends) {
  describe(backend, () => {
    test("a job that was enqueued is there, with what its definition says", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock({ at }) });

      const made = await book.jobs.enqueue(mail, { to: "ada" });

      assert.deepEqual(made, { id: made.id, name: "mail", status: "queued", created: true });
      const found = await book.jobs.get(made.id);
      assert.deepEqual(
        { ...found, id: "", position: 0 },
        {
          id: "",
          name: "mail",
          queue: "default",
          status: "queued",
          waitsFor: null,
          priority: 0,
          position: 0,
          createdAt: at,
          availableAt: at,
          startedAt: null,
          finishedAt: null,
          params: { to: "ada" },
          origin: "enqueued",
          attempt: 1,
          attempts: 4,
          losses: 0,
          key: null,
          tags: [],
          retryOf: null,
          template: null,
          retriedBy: null,
          runId: null,
          sessionId: null,
          gone: false,
          progress: null,
          cause: null,
          run: null,
          notify: null,
        },
      );
    });

    test("the options of an enqueue win over the definition's", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock({ at }) });

      const usual = await book.jobs.enqueue(tuned, {});
      const other = await book.jobs.enqueue(
        tuned,
        {},
        {
          queue: "fast",
          priority: -3,
          attempts: 9,
          losses: 0,
          timeout: "1m",
          backoff: { base: "2s" },
          tags: ["eu", "mail", "eu"],
        },
      );

      assert.deepEqual(await settings(book, usual), ["slow", 7, 2, 1, 10_000, '["1s"]', null]);
      assert.deepEqual(await settings(book, other), ["fast", -3, 9, 0, 60_000, '{"base":"2s"}', '["eu","mail"]']);
    });

    test("a job for later waits for its time, one for the past may run at once", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock({ at }) });

      const later = await book.jobs.enqueue(plain, {}, { at: "2026-06-02T00:00:00Z" });
      const soon = await book.jobs.enqueue(plain, {}, { in: "90s" });
      const date = await book.jobs.enqueue(plain, {}, { at: new Date(at + 1) });
      const past = await book.jobs.enqueue(plain, {}, { at: at - 1000 });
      const now = await book.jobs.enqueue(plain, {}, { in: 0 });

      const found = await Promise.all([later, soon, date, past, now].map(({ id }) => book.jobs.get(id)));
      assert.deepEqual(
        found.map(({ status, waitsFor, availableAt }) => [status, waitsFor, availableAt - at]),
        [
          ["waiting", "time", 86_400_000],
          ["waiting", "time", 90_000],
          ["waiting", "time", 1],
          ["queued", null, 0],
          ["queued", null, 0],
        ],
      );
      assert.equal(later.status, "waiting");
      assert.equal(past.status, "queued");
    });

    test("a job enqueued in a transaction is undone with it", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.write((tx) => tx.sql`create table note (body text)`);

      const kept = await book.write(async (tx) => {
        await tx.sql`insert into note values ('kept')`;
        return tx.jobs.enqueue(mail, { to: "ada" });
      });
      const undone = book.write(async (tx) => {
        await tx.sql`insert into note values ('undone')`;
        await tx.jobs.enqueue(mail, { to: "bob" }, { queue: "new-queue", key: "bob" });
        await tx.jobs.enqueueMany(mail, [{ to: "cy" }, { to: "di" }]);
        throw new RangeError("no");
      });

      await assert.rejects(undone, /no/);
      assert.deepEqual(
        (await book.jobs.list()).items.map(({ id }) => id),
        [kept.id],
      );
      assert.deepEqual(await book.read((tx) => tx.sql`select body from note`), [{ body: "kept" }]);
      // What the transaction had found out about queues and keys is forgotten with it.
      const again = await book.jobs.enqueue(mail, { to: "bob" }, { queue: "new-queue", key: "bob" });
      assert.equal((await book.jobs.get(again.id)).queue, "new-queue");
    });

    test("a job and the row it is about can be seen together in one transaction", async (t) => {
      const { book } = await openTest(t, backend, { use });

      const seen = await book.write(async (tx) => {
        const { id } = await tx.jobs.enqueue(mail, { to: "ada" });
        const [row] = await tx.sql<{ status: string }>`select status from daybook_job_now where id = ${id}`;
        const cancelled = await tx.jobs.cancel(id);
        return [row?.status, cancelled.status];
      });

      assert.deepEqual(seen, ["queued", "cancelled"]);
    });

    test("many jobs are enqueued in one transaction and in order, or none of them", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const list = Array.from({ length: 250 }, (_, index) => ({ to: `n${index}` }));

      const made = await book.jobs.enqueueMany(mail, list, { priority: 3, tags: ["bulk"] });
      const refused = book.jobs.enqueueMany(mail, [...list, { to: 5 as never }]);

      await assert.rejects(refused, { code: "invalid" });
      assert.deepEqual(await book.jobs.enqueueMany(mail, []), []);
      const found = await all(book);
      assert.deepEqual(
        found.map(({ id }) => id),
        made.map(({ id }) => id),
      );
      assert.deepEqual(
        found.map(({ params }) => params),
        list,
      );
      assert.ok(found.every(({ priority, tags }) => priority === 3 && tags[0] === "bulk"));
    });

    test("the same idempotency key and params give the same job, however often", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const options = { idempotencyKey: "request-1" };

      const first = await book.jobs.enqueue(mail, { to: "ada", copies: 2 }, options);
      const again = await book.jobs.enqueue(mail, { copies: 2, to: "ada" }, options);
      const inside = await book.write((tx) => tx.jobs.enqueue(mail, { to: "ada", copies: 2 }, options));
      const together = await Promise.all(
        Array.from({ length: 20 }, () => book.jobs.enqueue(plain, {}, { idempotencyKey: "request-2" })),
      );

      assert.equal(first.created, true);
      assert.deepEqual(again, { ...first, created: false });
      assert.deepEqual(inside, { ...first, created: false });
      assert.equal(new Set(together.map(({ id }) => id)).size, 1);
      assert.equal(together.filter(({ created }) => created).length, 1);
    });

    test("an idempotency key with other params, or for another job, is refused", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const options = { idempotencyKey: "request-1" };
      const first = await book.jobs.enqueue(mail, { to: "ada" }, options);

      const message = new RegExp(`idempotencyKey "request-1" belongs to job ${first.id} \\(mail\\) with other params`);
      await assert.rejects(book.jobs.enqueue(mail, { to: "bob" }, options), { code: "conflict", message });
      await assert.rejects(book.jobs.enqueue(plain, { to: "ada" }, options), { code: "conflict" });
      await assert.rejects(
        book.write((tx) => tx.jobs.enqueue(mail, { to: "bob" }, options)),
        { code: "conflict" },
      );
      assert.equal((await all(book)).length, 1);
    });

    test("an idempotency key is remembered after its job is done", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const worker = await book.startWorker();
      const first = await book.jobs.enqueue(mail, { to: "ada" }, { idempotencyKey: "request-1" });
      await worker.idle();

      const again = await book.jobs.enqueue(mail, { to: "ada" }, { idempotencyKey: "request-1" });

      assert.deepEqual(again, { ...first, status: "completed", created: false });
    });

    test("two tenants do not see, count or touch each other's jobs", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const [acme, bolt] = [book.tenant("acme"), book.tenant("bolt")];
      const options = { key: "k", onConflict: "error", idempotencyKey: "i" } as const;

      const ofAcme = await acme.jobs.enqueue(mail, { to: "ada" }, options);
      const ofBolt = await bolt.write((tx) => tx.jobs.enqueue(mail, { to: "bob" }, options));
      await bolt.jobs.pause("mail");
      await bolt.queues.pause("default");
      await bolt.queues.limit("default", { concurrency: 1 });

      assert.ok(ofAcme.created && ofBolt.created);
      for (const [mine, theirs, foreign] of [
        [acme, ofAcme, ofBolt],
        [bolt, ofBolt, ofAcme],
      ] as const) {
        assert.deepEqual(
          (await mine.jobs.list()).items.map(({ id }) => id),
          [theirs.id],
        );
        const unknown = { code: "not_found", message: `there is no job ${foreign.id}` };
        await assert.rejects(mine.jobs.get(foreign.id), unknown);
        await assert.rejects(mine.jobs.chain(foreign.id), unknown);
        await assert.rejects(mine.jobs.explain(foreign.id), unknown);
        await assert.rejects(mine.jobs.cancel(foreign.id), unknown);
        await assert.rejects(mine.jobs.retry(foreign.id), unknown);
        await assert.rejects(
          mine.write((tx) => tx.jobs.cancel(foreign.id)),
          unknown,
        );
      }
      const worker = await book.startWorker();
      await worker.idle();
      assert.equal((await acme.jobs.get(ofAcme.id)).status, "completed");
      assert.equal((await bolt.jobs.get(ofBolt.id)).status, "queued");
      assert.deepEqual(
        (await acme.queues.list()).map(({ queue, paused }) => [queue, paused]),
        [["default", null]],
      );
      await bolt.queues.resume("default");
      await worker.idle();
      assert.equal((await bolt.jobs.get(ofBolt.id)).waitsFor, "host");
      await bolt.jobs.resume("mail");
      await worker.idle();
      assert.equal((await bolt.jobs.get(ofBolt.id)).status, "completed");
      assert.deepEqual(
        (await acme.runs.list()).items.map(({ jobId }) => jobId),
        [ofAcme.id],
      );
      assert.deepEqual(await book.doctor(), []);
    });

    test("a list is filtered by status, name, queue, key and tag, and read page by page", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const one = await book.jobs.enqueue(plain, {}, { queue: "a", tags: ["red", "round"], key: "k1" });
      const two = await book.jobs.enqueue(plain, {}, { queue: "b", tags: ["red"], in: "1h" });
      const three = await book.jobs.enqueue(mail, { to: "x" }, { queue: "b", tags: ["green"] });
      const ids = async (filter: Parameters<Book["jobs"]["list"]>[0]): Promise<string[]> =>
        (await book.jobs.list(filter)).items.map(({ id }) => id);

      assert.deepEqual(await ids({}), [three.id, two.id, one.id]);
      assert.deepEqual(await ids({ status: "waiting" }), [two.id]);
      assert.deepEqual(await ids({ status: ["waiting", "queued"], queue: "b" }), [three.id, two.id]);
      assert.deepEqual(await ids({ name: "plain" }), [two.id, one.id]);
      assert.deepEqual(await ids({ tag: "red" }), [two.id, one.id]);
      assert.deepEqual(await ids({ tag: "re" }), []);
      assert.deepEqual(await ids({ key: "k1" }), [one.id]);
      const first = await book.jobs.list({ limit: 2 });
      assert.deepEqual(
        first.items.map(({ id }) => id),
        [three.id, two.id],
      );
      const second = await book.jobs.list({ limit: 2, after: first.next ?? "" });
      assert.deepEqual([second.items.map(({ id }) => id), second.next], [[one.id], null]);
      const wrong: [object, RegExp][] = [
        [{ limit: 0 }, /limit 0 is not a whole number from 1 to 500/],
        [{ limit: 501 }, /limit 501/],
        [{ after: "x" }, /"x" is not a cursor/],
        [{ after: "" }, /"" is not a cursor/],
        [{ after: "1e3" }, /"1e3" is not a cursor/],
        [{ status: "done" }, /status "done" is not known\. Known: waiting, queued/],
        [{ statsu: "queued" }, /unknown option "statsu" for the list of jobs: did you mean "status"\?/],
      ];
      for (const [filter, message] of wrong) await assert.rejects(book.jobs.list(filter), { code: "invalid", message });
    });
  });
}

async function settings(book: Book, { id }: Enqueued): Promise<unknown[]> {
  const [row] = await book.read(
    (tx) => tx.sql`select queue, priority, attempts, losses_max, timeout_ms, backoff, tags
      from daybook_job_now job join daybook_lane lane on lane.seq = job.lane_seq where id = ${id}`,
  );
  return Object.values(row ?? {});
}

async function all(book: Book): Promise<JobRecord[]> {
  return (await book.jobs.list({ limit: 500 })).items.toReversed();
}
