// Remote workers: whoever holds a lease ends the run, and nobody else does.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { giveUp, job, manualClock, type Book, type LeasedJob, type ManualClock } from "../../src/index.ts";
import { limits } from "../../src/core/limits.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

type Open = { readonly book: Book; readonly clock: ManualClock };

/** A book in which nothing runs here. */
async function openBook(t: TestContext, backend: Backend): Promise<Open> {
  const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
  const { book } = await openTest(t, backend, { worker: false, clock });
  return { book, clock };
}

async function attach(book: Book, ...names: string[]): Promise<string> {
  return (await book.workers.attach({ names })).session;
}

async function claimOne(book: Book, session: string): Promise<LeasedJob> {
  const [taken] = await book.workers.claim(session, { wait: "10s" });
  assert.ok(taken, "there is a job to claim");
  return taken;
}

const failed = { error: { type: "ValueError", message: "no such width" } };

for (const backend of backends) {
  describe(`remote workers on ${backend}`, () => {
    test("a job that is claimed and settled is completed, with the worker's progress, log and result", async (t) => {
      const { book } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", { width: 80 }, { tags: ["a"] });
      const { session } = await book.workers.attach({ names: ["resize"], host: "elsewhere", pid: 7 });

      const taken = await claimOne(book, session);
      await book.workers.progress(taken.lease, { done: 0.5, note: "half" });
      const half = await book.jobs.get(made.id);
      await book.workers.log(taken.lease, { message: "hello", fields: { n: 1 }, level: "warn" });
      const ended = await book.workers.settle(taken.lease, { bytes: 512 });

      assert.deepEqual([taken.id, taken.params, taken.attempt, taken.tags], [made.id, { width: 80 }, 1, ["a"]]);
      assert.deepEqual([half.status, half.progress], ["running", { done: 0.5, note: "half" }]);
      assert.deepEqual(ended, { id: made.id, run: taken.run, status: "completed", retriedBy: null, already: false });
      assert.deepEqual(await book.jobs.result(made), { bytes: 512 });
      const [line] = await book.runs.logs(taken.run);
      assert.deepEqual([line?.level, line?.message, line?.fields], ["warn", "hello", { n: 1 }]);
      assert.equal((await book.runs.get(taken.run)).sessionId, session);
      const { items } = await book.sessions.list();
      const [remote] = items.filter(({ kind }) => kind === "remote");
      assert.deepEqual([remote?.id, remote?.host, remote?.pid, remote?.status], [session, "elsewhere", 7, "running"]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("jobs are claimed in their order, each once, and only those of its names and queues", async (t) => {
      const { book } = await openBook(t, backend);
      const made = [];
      for (const n of [1, 2, 3]) made.push((await book.jobs.enqueue("resize", { n })).id);
      const urgent = await book.jobs.enqueue("resize", { n: 0 }, { priority: 10 });
      const elsewhere = await book.jobs.enqueue("resize", {}, { queue: "slow" });
      const other = await book.jobs.enqueue("crop", {});
      const first = (await book.workers.attach({ names: ["resize"], queues: ["default"] })).session;
      const second = (await book.workers.attach({ names: ["resize"], queues: ["default"] })).session;

      const both = await Promise.all([book.workers.claim(first, { most: 3 }), book.workers.claim(second, { most: 3 })]);
      const left = await book.workers.claim(first);
      const [slow] = await book.workers.claim(await attach(book, "resize", "crop"), { names: ["resize"] });

      const taken = both.flat().map(({ id }) => id);
      assert.deepEqual(taken.toSorted(), [urgent.id, ...made].toSorted());
      assert.ok(
        both.some(([one]) => one?.id === urgent.id),
        "the urgent one comes first",
      );
      assert.deepEqual(left, []);
      assert.equal(slow?.id, elsewhere.id);
      assert.notEqual((await book.jobs.get(other.id)).status, "running");
    });

    test("a local and a remote worker never run the same job, and each takes what only it can run", async (t) => {
      const ran: string[] = [];
      const both = job("both", { run: (_params: unknown, { job: { id } }) => void ran.push(id) });
      const local = job("local", { run: (_params: unknown, { job: { id } }) => void ran.push(id) });
      const { book } = await openTest(t, backend, { use: [both, local] });
      const session = await attach(book, "both", "remote");
      const made = [];
      for (let n = 0; n < 20; n++) made.push((await book.jobs.enqueue(both, {})).id);
      await book.jobs.enqueue("remote", {});
      await book.jobs.enqueue(local, {});

      const worker = await book.startWorker({ concurrency: 3 });
      const names: string[] = [];
      const remote: string[] = [];
      while (!names.includes("remote")) {
        for (const { lease, id, name } of await book.workers.claim(session, { most: 3, wait: "10s" })) {
          await book.workers.settle(lease);
          names.push(name);
          remote.push(id);
        }
      }
      await worker.idle();

      const all = [...ran, ...remote];
      assert.equal(new Set(all).size, all.length, "none ran twice");
      assert.equal(all.length, 22);
      assert.ok(!names.includes("local"));
      assert.deepEqual(await book.doctor(), []);
    });

    test("a claim that waits gets a job as soon as it is there, and none when it is aborted", async (t) => {
      const { book } = await openBook(t, backend);
      const session = await attach(book, "resize");

      const waiting = book.workers.claim(session, { wait: "30s" });
      const made = await book.jobs.enqueue("resize", {});
      const [taken] = await waiting;
      const gone = new AbortController();
      const aborted = book.workers.claim(session, { wait: "30s", signal: gone.signal });
      gone.abort();

      assert.equal(taken?.id, made.id);
      assert.deepEqual(await aborted, []);
    });

    test("a delayed job is claimed by a waiting worker when its time has come", async (t) => {
      const { book, clock } = await openBook(t, backend);
      const session = await attach(book, "resize");
      const made = await book.jobs.enqueue("resize", {}, { in: "10s" });
      assert.deepEqual(await book.workers.claim(session), []);

      const waiting = book.workers.claim(session, { wait: "30s" });
      await clock.advance("11s");

      assert.equal((await waiting)[0]?.id, made.id);
    });

    test("a lease that is not renewed is lost: the job begins again in its place, and a late settle is refused", async (t) => {
      const { book, clock } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      const late = await attach(book, "resize");
      const taken = await claimOne(book, late);

      await clock.advance("31s");
      const again = await claimOne(book, await attach(book, "resize"));
      const refused = await book.workers.settle(taken.lease, 1).then(
        () => undefined,
        (error: unknown) => error,
      );
      await book.workers.settle(again.lease, 2);

      assert.equal((refused as { code: string }).code, "conflict");
      const { details } = refused as { details: Record<string, unknown> };
      assert.deepEqual([details["lost"], details["jobId"], details["retriedBy"]], [true, made.id, again.id]);
      assert.deepEqual([again.attempt, (await book.jobs.get(again.id)).retryOf], [1, made.id]);
      const run = await book.runs.get(taken.run);
      assert.deepEqual([run.status, run.error?.type], ["lost", "LeaseLost"]);
      assert.equal(await book.jobs.result(made), 2);
      assert.equal((await book.jobs.chain(made.id)).length, 2);
      assert.deepEqual(await book.doctor(), []);
    });

    test("whoever settles first after the lease ran out finds it lost, also when nobody looked", async (t) => {
      const { book, clock } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      const taken = await claimOne(book, await attach(book, "resize"));

      clock.step("31s");
      await assert.rejects(book.workers.settle(taken.lease), { code: "conflict", message: /ran out at/ });

      assert.equal((await book.runs.get(taken.run)).status, "lost");
      assert.equal((await book.jobs.chain(made.id)).at(-1)?.status, "queued");
    });

    test("a lease that is renewed is kept, and never beyond the timeout of its run", async (t) => {
      const { book, clock } = await openBook(t, backend);
      await book.jobs.enqueue("resize", {}, { timeout: "70s", attempts: 1 });
      const taken = await claimOne(book, await attach(book, "resize"));

      await clock.advance("20s");
      const first = await book.workers.extend(taken.lease);
      await clock.advance("20s");
      const second = await book.workers.extend(taken.lease, { lasts: "10m" });
      await clock.advance("31s");

      assert.equal(first.expiresAt, clock.now() - 51_000 + 30_000);
      assert.deepEqual([second.expiresAt, second.deadlineAt], [taken.deadlineAt, taken.deadlineAt]);
      await assert.rejects(book.workers.extend(taken.lease), { code: "conflict" });
      assert.equal((await book.runs.get(taken.run)).status, "timed_out");
      assert.equal((await book.jobs.get(taken.id)).status, "failed");
    });

    test("a repeated settle of the same lease says that it is settled already, and changes nothing", async (t) => {
      const { book } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      const session = await attach(book, "resize");
      const taken = await claimOne(book, session);
      const first = await book.workers.settle(taken.lease, 1);

      const second = await book.workers.settle(taken.lease, 2);

      assert.deepEqual(second, { ...first, already: true });
      assert.equal(await book.jobs.result(made), 1);
      await assert.rejects(book.workers.fail(taken.lease, failed), { code: "conflict", message: /settled already/ });
      await assert.rejects(book.workers.extend(taken.lease), { code: "conflict" });
      const other = await book.jobs.enqueue("resize", {});
      const next = await claimOne(book, session);
      assert.equal((await book.workers.settle(taken.lease, 3)).id, made.id, "a replayed lease ends nothing else");
      assert.equal((await book.jobs.get(other.id)).status, "running");
      await book.workers.settle(next.lease);
    });

    test("a forged lease, another tenant's and another token's are refused", async (t) => {
      const { book } = await openBook(t, backend);
      const token = (tokenId: string) => ({ tokenId, queues: null, names: null });
      await book.jobs.enqueue("resize", {});
      const { session } = await book.workers.attach({ names: ["resize"] }, token("one"));
      const acme = book.tenant("acme");

      await assert.rejects(book.workers.claim(session, {}, token("two")), { code: "forbidden" });
      await assert.rejects(acme.workers.claim(session), { code: "not_found" });
      await assert.rejects(acme.workers.leave(session), { code: "not_found" });
      const [taken] = await book.workers.claim(session, {}, token("one"));
      assert.ok(taken);

      const forged = `${taken.lease.slice(0, -1)}${taken.lease.endsWith("A") ? "B" : "A"}`;
      for (const lease of [forged, taken.run, taken.id, "dbw_", "x"]) {
        await assert.rejects(book.workers.settle(lease, 1, token("one")), { code: "not_found" }, lease);
      }
      await assert.rejects(acme.workers.settle(taken.lease, 1, token("one")), { code: "not_found" });
      await assert.rejects(book.workers.settle(taken.lease, 1, token("two")), { code: "forbidden" });
      await assert.rejects(book.workers.extend(taken.lease, {}, token("two")), { code: "forbidden" });
      assert.equal((await book.jobs.get(taken.id)).status, "running");
      assert.equal((await book.workers.settle(taken.lease, 1, token("one"))).status, "completed");
    });

    test("a token that names queues and jobs gives no others, and a worker sees its tenant's jobs alone", async (t) => {
      const { book } = await openBook(t, backend);
      const grant = { tokenId: "t", queues: ["mail"], names: ["send", "bounce"] };
      await book.tenant("acme").jobs.enqueue("send", {}, { queue: "mail" });
      await book.jobs.enqueue("send", {});
      const made = await book.jobs.enqueue("send", {}, { queue: "mail" });

      await assert.rejects(book.workers.attach({ names: ["resize"] }, grant), { code: "forbidden" });
      await assert.rejects(book.workers.attach({ queues: ["default"] }, grant), { code: "forbidden" });
      await assert.rejects(book.workers.attach({}), { code: "invalid" });
      for (const name of ["daybook.call", "listener:hear"]) {
        await assert.rejects(book.workers.attach({ names: [name] }), { code: "invalid" });
      }
      const attached = await book.workers.attach({}, grant);
      const taken = await book.workers.claim(attached.session, { most: 5 }, grant);

      assert.deepEqual([attached.names, attached.queues], [grant.names, grant.queues]);
      assert.deepEqual(
        taken.map(({ id }) => id),
        [made.id],
      );
      await assert.rejects(book.workers.claim(attached.session, { queues: ["default"] }, grant), { code: "forbidden" });
    });

    test("a failure is tried again as the job says, later if the worker says so, and not at all if it says that", async (t) => {
      const { book, clock } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {}, { attempts: 5 });
      const session = await attach(book, "resize");

      const first = await book.workers.fail((await claimOne(book, session)).lease, failed);
      await clock.advance("11s");
      const [second] = await book.workers.claim(session);
      assert.equal(second?.id, first.retriedBy);
      await book.workers.fail(second?.lease ?? "", { ...failed, retryIn: "10m" });
      await clock.advance("9m");
      assert.deepEqual(await book.workers.claim(session), []);
      await clock.advance("2m");
      const third = await claimOne(book, session);
      const last = await book.workers.fail(third.lease, { error: { message: "hopeless" }, retryable: false });
      const repeated = await book.workers.fail(third.lease, failed);

      assert.deepEqual([third.attempt, last.status, last.retriedBy], [3, "failed", null]);
      assert.deepEqual(repeated, { ...last, already: true });
      await assert.rejects(book.jobs.result(made), { code: "conflict", message: /hopeless/ });
      assert.deepEqual(await book.doctor(), []);
    });

    test("a worker hears of a cancel when it renews, and its failure then is a cancelled job", async (t) => {
      const { book } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      const taken = await claimOne(book, await attach(book, "resize"));
      const before = await book.workers.extend(taken.lease);

      await book.jobs.cancel(made.id);
      const told = [await book.workers.extend(taken.lease), await book.workers.progress(taken.lease, { done: 1 })];
      const ended = await book.workers.fail(taken.lease, failed);

      assert.equal(before.cancelled, false);
      assert.deepEqual(
        told.map(({ cancelled }) => cancelled),
        [true, true],
      );
      assert.deepEqual([ended.status, ended.retriedBy], ["cancelled", null]);
      assert.equal((await book.runs.get(taken.run)).status, "cancelled");
    });

    test("a cancelled job whose worker is lost is cancelled, and not tried again", async (t) => {
      const { book, clock } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      await claimOne(book, await attach(book, "resize"));
      await book.jobs.cancel(made.id);

      await clock.advance("31s");
      // The timer of the lease may be at it, and then recover leaves it to the timer.
      await assert.rejects(book.jobs.result(made), { code: "conflict", message: /cancelled/ });

      assert.equal((await book.jobs.get(made.id)).status, "cancelled");
      assert.equal((await book.jobs.chain(made.id)).length, 1);
    });

    test("the jobs of a worker that leaves begin again in their place, and nothing is counted", async (t) => {
      const { book } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      await book.jobs.enqueue("resize", {});
      const session = await attach(book, "resize");
      const taken = await claimOne(book, session);

      const left = await book.workers.leave(session);
      const next = await claimOne(book, await attach(book, "resize"));

      assert.equal(left.returned, 1);
      assert.deepEqual([next.attempt, (await book.jobs.get(next.id)).retryOf], [1, made.id]);
      await assert.rejects(book.workers.settle(taken.lease), { code: "conflict", message: /given back/ });
      await assert.rejects(book.workers.claim(session), { code: "conflict", message: /attach again/ });
      assert.deepEqual(await book.doctor(), []);
    });

    test("a group that runs one after another goes on when a remote worker settles, and stops when it fails", async (t) => {
      const { book } = await openBook(t, backend);
      const group = await book.groups.create({ mode: "sequential" }, (add) => {
        for (const n of [1, 2, 3]) add.add("resize", { n }, { attempts: 1 });
      });
      const session = await attach(book, "resize");

      const first = await book.workers.claim(session, { most: 3 });
      await book.workers.settle(first[0]?.lease ?? "");
      const second = await book.workers.claim(session, { most: 3 });
      await book.workers.fail(second[0]?.lease ?? "", failed);
      const third = await book.workers.claim(session, { most: 3 });

      assert.deepEqual([first.length, second.length, third.length], [1, 1, 0]);
      assert.equal((await book.groups.get(group.id)).status, "failed");
    });

    test("limits hold for local and remote workers together", async (t) => {
      const one = job("one", { concurrency: 1, run: () => giveUp("never here") });
      const { book } = await openTest(t, backend, { use: [one] });
      // The book learns the limit from whoever hosts it.
      await (await book.startWorker()).stop();
      for (let n = 0; n < 2; n++) await book.jobs.enqueue(one, {});
      const session = await attach(book, "one");

      const first = await book.workers.claim(session, { most: 2 });
      const none = await book.workers.claim(session, { most: 2 });
      await book.workers.settle(first[0]?.lease ?? "");
      const second = await book.workers.claim(session, { most: 2, wait: "10s" });

      assert.deepEqual([first.length, none.length, second.length], [1, 0, 1]);
    });

    test("a job that was lost twice runs alone in its worker", async (t) => {
      const { book, clock } = await openBook(t, backend);
      await book.jobs.enqueue("resize", {});
      for (let lost = 0; lost < 2; lost++) {
        const { lease } = await claimOne(book, await attach(book, "resize"));
        await clock.advance("31s");
        // The timer of the lease may be at it: recover leaves it to the timer, a settle waits for its end.
        await assert.rejects(book.workers.settle(lease), { code: "conflict", message: /ran out at/ });
      }
      const busy = await attach(book, "crop", "resize");
      await book.jobs.enqueue("crop", {});
      const crop = await claimOne(book, busy);
      await book.jobs.enqueue("resize", { n: 2 });
      const free = await attach(book, "resize");

      const [ordinary] = await book.workers.claim(busy, { most: 5 });
      await book.jobs.enqueue("resize", { n: 3 });
      const alone = await book.workers.claim(free, { most: 5 });
      const beside = await book.workers.claim(free, { most: 5 });
      const { lease = "", id = "" } = alone[0] ?? {};
      await book.workers.fail(lease, { ...failed, retryable: false });
      const after = await book.workers.claim(free, { most: 5 });

      assert.equal(crop.name, "crop");
      assert.deepEqual(ordinary?.params, { n: 2 }, "a worker that holds something takes no job that must be alone");
      assert.deepEqual([alone.length, alone[0]?.params, beside.length], [1, {}, 0]);
      assert.deepEqual(
        after.map(({ params }) => params),
        [{ n: 3 }],
      );
      assert.equal((await book.jobs.get(id)).status, "failed");
    });

    test("a worker that holds nothing and is silent is taken for gone, and one that holds a lease is not", async (t) => {
      const { book, clock } = await openBook(t, backend);
      const idle = await attach(book, "resize");
      const busy = await attach(book, "resize");
      await book.jobs.enqueue("resize", {});
      const [taken] = await book.workers.claim(busy, { lease: "10m" });

      await clock.advance(limits.remoteSilentMs + 1000);
      await book.jobs.recover();
      const { items } = await book.sessions.list();
      const status = new Map(items.map((session) => [session.id, session.status]));

      assert.deepEqual([status.get(idle), status.get(busy)], ["unknown", "running"]);
      assert.equal((await book.workers.settle(taken?.lease ?? "")).status, "completed");
    });

    test("a lease that was given while the clock ran ahead is dated anew once the clock is right", async (t) => {
      const { book, clock } = await openBook(t, backend);
      await book.jobs.enqueue("resize", {});
      const session = await attach(book, "resize");
      clock.step("2d");
      const taken = await claimOne(book, session);
      clock.step("-2d");
      await clock.advance("20s");

      await book.jobs.recover();
      const renewed = await book.jobs.get(taken.id);
      await clock.advance("31s");
      await assert.rejects(book.workers.settle(taken.lease), { code: "conflict", message: /ran out at/ });

      assert.equal(renewed.status, "running");
      assert.equal((await book.runs.get(taken.run)).status, "lost");
    });

    test("a short lease that was given while the clock ran an hour ahead does not hold its job for that hour", async (t) => {
      const { book, clock } = await openBook(t, backend);
      await book.jobs.enqueue("resize", {});
      clock.step("1h");
      const taken = await claimOne(book, await attach(book, "resize"));
      clock.step("-1h");
      await clock.advance("20s");

      await book.jobs.recover();
      clock.step("31s");
      await assert.rejects(book.workers.settle(taken.lease), { code: "conflict", message: /ran out at/ });

      assert.equal((await book.runs.get(taken.run)).status, "lost");
    });

    test("doctor finds a remote run that nothing would end", async (t) => {
      const { book } = await openBook(t, backend);
      await book.jobs.enqueue("resize", {});
      const { id } = await claimOne(book, await attach(book, "resize"));
      assert.deepEqual(await book.doctor(), []);

      await tamper(book, (tx) => tx.sql`delete from daybook_lease`);

      assert.deepEqual(
        (await book.doctor()).flatMap(({ promise, found }) => [promise, ...found]),
        ["J9", id],
      );
    });

    test("a program may enqueue by name what a remote worker of its tenant runs", async (t) => {
      const { book } = await openTest(t, backend);
      await assert.rejects(book.jobs.enqueue("resize", {}), { code: "invalid", message: /does not know the job/ });

      await attach(book, "resize");
      const hosted = await book.jobs.enqueue("resize", {});

      assert.equal(hosted.warning, undefined);
      await assert.rejects(book.tenant("acme").jobs.enqueue("resize", {}), { code: "invalid" });
    });

    test("a name that a remote worker runs has a host, for its own tenant alone", async (t) => {
      const { book } = await openBook(t, backend);
      const made = await book.jobs.enqueue("resize", {});
      const foreign = await book.tenant("acme").jobs.enqueue("resize", {});
      const session = await attach(book, "resize");

      const own = await book.jobs.explain(made.id);
      const theirs = await book.tenant("acme").jobs.explain(foreign.id);

      assert.deepEqual([own.reason, own.because.at(-1)], ["place", `Session ${session} runs resize.`]);
      assert.equal(theirs.reason, "host");
    });
  });
}
