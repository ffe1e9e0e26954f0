import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, limits, manualClock, type Book, type Job } from "../../src/index.ts";
import type { Store } from "../../src/storage/store.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { leave } from "../jobs/leave.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const at0 = Date.UTC(2026, 5, 1);
const day = 86_400_000;
const run = (): void => undefined;
const plain = job("plain", { attempts: 1, run });
const other = job("other", { attempts: 1, queue: "side", run });
const stubborn = job("stubborn", { attempts: 3, backoff: ["0s"], run });
const use = [plain, other, stubborn];
const none = {
  jobs: 0,
  groups: 0,
  runs: 0,
  logs: 0,
  steps: 0,
  reservations: 0,
  others: {},
  files: [],
  filesDeleted: 0,
  slices: 0,
};

for (const backend of backends) {
  describe(backend, () => {
    test("what ended long enough ago leaves with its run, log, steps and command; the rest stays", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const old = [await end(at, plain), await end(at, plain, "error"), await end(at, other, "cancelled")];
      await at.jobs.enqueue(plain, {}, { at: at0 });
      await at.jobs.cancel((await queued(at))[0] ?? "");
      await at.clock.advance(day);
      const young = await end(at, plain);
      for (const id of [...old, young]) await decorate(at, id);
      const open = [await at.jobs.enqueue(plain, {}), await at.jobs.enqueue(plain, {}, { in: "1h" })];
      const [running] = await at.claim(1);
      await at.clock.advance(day - 1);
      const options = { olderThan: "1d" };

      const before = await at.dump();
      const dry = await leave(at, { ...options, dryRun: true });
      const unchanged = await at.dump();
      const done = await leave(at, options);
      const again = await leave(at, options);

      const files = old.map((id) => `logs/${id}`);
      assert.deepEqual(unchanged, before);
      const removed = { ...none, jobs: 4, runs: 3, logs: 6, steps: 3, slices: 1, files: files.toSorted() };
      assert.deepEqual([sorted(dry), sorted(done)], [removed, removed]);
      assert.deepEqual(again, none);
      assert.deepEqual(await ids(at), [young, ...open.map(({ id }) => id)]);
      assert.deepEqual(await left(at), { run: 1, run_log: 2, job_step: 1, run_command: 1 });
      const account = { tenant_id: "default", day_at: at0 + day, reason: "age", from_at: at0, until_at: at0 };
      const noted = { ...account, removed_at: at0 + 2 * day - 1 };
      assert.deepEqual(await at.rows("select * from daybook_eviction order by what"), [
        { ...noted, what: "job", removed: 4 },
        { ...noted, what: "log", removed: 6 },
        { ...noted, what: "run", removed: 3 },
      ]);
      assert.equal(running?.id, open[0]?.id);
      assert.equal((await at.end(running ?? { seq: 0, run_id: "" }, { status: "success" })).late.size, 0);
      await assertInvariants(at);
    });

    test("keep leaves those that ended last, of the queue, the name and the status that were asked for", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      // Made first and ended last: the end is what counts.
      const late = await at.jobs.enqueue(plain, {}, { in: "1h" });
      const a = [await end(at, plain), await end(at, plain), await end(at, plain, "error")];
      const b = [await end(at, other), await end(at, other)];
      await at.clock.advance(3_600_000);
      const [due] = (await at.turn(1, at.claimer(), { lookForDue: true })).claim.jobs;
      await at.end(due ?? { seq: 0, run_id: "" }, { status: "success" });

      const side = await leave(at, { keep: 1, queue: "side" });
      assert.deepEqual([side.jobs, await ids(at)], [1, [late.id, ...a, ...b.slice(1)]]);
      const failed = await leave(at, { keep: 0, status: ["failed", "cancelled"], name: "plain" });
      assert.deepEqual([failed.jobs, await ids(at)], [1, [late.id, ...a.slice(0, 2), ...b.slice(1)]]);
      const enough = await leave(at, { keep: 3, name: "plain" });
      assert.deepEqual(enough, none);
      const both = await leave(at, { keep: 1, name: "plain", olderThan: "2h" });
      assert.deepEqual(both, none);
      const named = await leave(at, { keep: 1, name: "plain" });
      assert.deepEqual([named.jobs, await ids(at)], [2, [late.id, ...b.slice(1)]]);
      const unknown = await leave(at, { keep: 0, queue: "nowhere" });
      assert.deepEqual(unknown, none);
      const all = await leave(at, { keep: 0 });
      assert.deepEqual([all.jobs, await ids(at), await left(at)], [2, [], empty]);
      await assertInvariants(at);
    });

    test("a chain of retries leaves as a whole, by its last job, and not while that is open", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const done = await end(at, stubborn, "error");
      await endNext(at, "lost");
      await endNext(at, "success");
      const open = await end(at, stubborn, "error");
      await at.clock.advance(day);

      assert.deepEqual(await leave(at, { olderThan: 0, status: "failed" }), none);
      const first = await leave(at, { olderThan: "1d" });
      assert.deepEqual([first.jobs, first.runs], [3, 3]);
      await assert.rejects(at.jobs.get(done), { code: "not_found" });
      assert.equal((await at.jobs.chain(open)).length, 2);

      await endNext(at, "error");
      await endNext(at, "error");
      assert.deepEqual(await leave(at, { olderThan: "1d" }), none, "its last job ended just now");
      const retried = await at.jobs.retry(open);
      await at.clock.advance(day);
      assert.deepEqual(await leave(at, { olderThan: "1d" }), none, "it was retried by hand");
      await at.jobs.cancel(retried.id);
      assert.deepEqual((await leave(at, { olderThan: 0, status: "cancelled" })).jobs, 4);
      assert.deepEqual([await ids(at), await left(at)], [[], empty]);
      await assertInvariants(at);
    });

    test("a group leaves as a whole with its row, once it is finished and all of it fits", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const members = [await end(at, plain), await end(at, other), await end(at, plain, "error")];
      await end(at, plain);
      const open = [await end(at, plain), (await at.jobs.enqueue(plain, {}, { in: "9d" })).id];
      await group(at, "done", members, at0 + day);
      await group(at, "open", open, null);
      await at.clock.advance(day);

      assert.equal((await leave(at, { olderThan: "1d" })).jobs, 1, "the group ended later than its jobs");
      assert.deepEqual(await ids(at), [...members, ...open]);
      await at.clock.advance(day);
      assert.deepEqual(await leave(at, { olderThan: "1d", name: "plain" }), none);
      assert.deepEqual(await leave(at, { keep: 2 }), none, "one of it is among the newest");
      const dry = await leave(at, { olderThan: "1d", dryRun: true });
      const { jobs, groups, runs } = await leave(at, { olderThan: "1d" });

      assert.deepEqual([jobs, groups, runs, dry.jobs, dry.groups, dry.runs], [3, 1, 3, 3, 1, 3]);
      assert.deepEqual(await ids(at), open);
      assert.deepEqual(await at.rows("select id from daybook_job_group"), [{ id: "open" }]);
      await assertInvariants(at);
    });

    test("a key that is held for a window keeps its job until the window is over", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const options = { key: "k", keyScope: { window: "2d" } } as const;
      const { id } = await at.jobs.enqueue(plain, {}, options);
      await endNext(at, "success");
      const free = await at.jobs.enqueue(plain, {}, { key: "free" });
      await endNext(at, "success");
      await at.clock.advance(day);

      assert.equal((await leave(at, { olderThan: 0 })).jobs, 1);
      assert.deepEqual([await ids(at), free.created], [[id], true]);
      assert.equal((await at.jobs.enqueue(plain, {}, options)).id, id);
      await at.clock.advance(day);
      assert.equal((await leave(at, { keep: 0 })).jobs, 1);
      assert.ok((await at.jobs.enqueue(plain, {}, options)).created);
      await assertInvariants(at);
    });

    test("one tenant's retention leaves the others' alone", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const [acme, bolt] = [at.tenant("acme"), at.tenant("bolt")];
      for (const { jobs } of [acme, bolt, acme, bolt]) {
        const { id } = await jobs.enqueue(stubborn, {});
        await endNext(at, "error");
        await endNext(at, "success");
        await decorate(at, id);
      }
      const theirs = async (): Promise<unknown> => [
        await at.rows("select * from daybook_job_now where tenant_id = 'bolt' order by seq"),
        await at.rows("select * from daybook_run where tenant_id = 'bolt' order by seq"),
        await at.rows("select * from daybook_run_log where tenant_id = 'bolt' order by seq"),
        await at.rows("select * from daybook_job_step where tenant_id = 'bolt' order by chain_seq"),
      ];
      const before = await theirs();

      assert.equal((await leave(at, { keep: 1, dryRun: true }, "acme")).jobs, 2);
      const first = await leave(at, { keep: 1 }, "acme");
      const rest = await leave(at, { olderThan: 0 }, "acme");

      assert.deepEqual([first.jobs, rest.jobs, rest.logs], [2, 2, 2]);
      assert.deepEqual(await theirs(), before);
      assert.deepEqual((await acme.jobs.list()).items, []);
      assert.deepEqual(await at.rows("select distinct tenant_id from daybook_eviction"), [{ tenant_id: "acme" }]);
      await assertInvariants(at);
    });

    test("many jobs leave in slices of bounded size, and others work in between", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const heavy = await end(at, plain);
      await at.run(`insert into daybook_run_log (tenant_id, run_id, logged_at, level, message)
        select tenant_id, run_id, n, 'info', 'line' from daybook_job_now, ${numbers(limits.retainRowsMax)} where id = '${heavy}'`);
      const many = 2 * limits.retainRowsMax + 100;
      await cancelled(at, many);
      await at.jobs.enqueueMany(
        plain,
        Array.from({ length: 50 }, () => ({})),
      );
      const options = { olderThan: 0 };
      const dry = await leave(at, { ...options, dryRun: true });

      const [done, made, claimed] = await Promise.all([
        leave(at, options),
        Promise.all(Array.from({ length: 20 }, () => at.jobs.enqueue(plain, {}))),
        at.claim(30),
      ]);

      assert.deepEqual(done, dry);
      assert.deepEqual([done.jobs, done.logs, done.slices], [many + 1, limits.retainRowsMax, 4]);
      assert.deepEqual([made.length, claimed.length, (await ids(at)).length], [20, 30, 70]);
      for (const each of claimed) assert.equal((await at.end(each, { status: "success" })).late.size, 0);
      assert.equal((await leave(at, options)).jobs, 30);
      await assertInvariants(at);
    });

    test("two processes at it at once remove everything once", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const there = await openEngine(t, backend, { use, url: at.url, clock: at.clock });
      const many = 3 * limits.retainRowsMax;
      await cancelled(at, many);

      const both = await Promise.all([at, there].map((each) => leave(each, { olderThan: 0 })));

      assert.equal(
        both.reduce((sum, { jobs }) => sum + jobs, 0),
        many,
      );
      const [{ removed } = { removed: 0 }] = await at.rows<{ removed: number }>(
        "select removed from daybook_eviction where what = 'job'",
      );
      assert.deepEqual([removed, await ids(at)], [many, []]);
    });

    test("a job that is retried after it was found, and before it is removed, stays with its chain", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const failed = await end(at, plain, "error");
      const gone = await end(at, plain);
      await foldRuns(at.store);
      const store: Store = {
        ...at.store,
        write: async (unit, how) => {
          await at.jobs.retry(failed);
          return at.store.write(unit, how);
        },
      };

      const done = await leave({ engine: { ...at.engine, store } }, { olderThan: 0 });

      assert.equal(done.jobs, 1);
      await assert.rejects(at.jobs.get(gone), { code: "not_found" });
      assert.deepEqual(
        (await at.jobs.chain(failed)).map(({ status }) => status),
        ["failed", "queued"],
      );
      await assertInvariants(at);
    });

    test("a job that is made after others have left stands behind those that are in line, wherever they were moved", async (t) => {
      const at = await openEngine(t, backend, { use, clock: manualClock({ at: at0 }) });
      const { id: moved } = await at.jobs.enqueue(plain, {});
      const rest = await at.jobs.enqueueMany(plain, [{}, {}, {}]);
      await at.run(
        `update daybook_line set position = (select max(position) from daybook_line) + 50
          where seq = (select seq from daybook_job where id = '${moved}')`,
      );
      for (const claimed of await at.claim(3)) await at.end(claimed, { status: "success" });

      const { jobs } = await leave(at, { keep: 0 });
      const { id: next } = await at.jobs.enqueue(plain, {});

      assert.equal(jobs, backend === "sqlite" ? rest.length - 1 : rest.length);
      const [first, second] = [await at.claim(1), await at.claim(1)];
      assert.deepEqual([first[0]?.id, second[0]?.id], [moved, next]);
      await assertInvariants(at);
    });

    test("jobs that a worker ran leave through the book, and doctor finds nothing amiss", async (t) => {
      const talk = job("talk", {
        attempts: 3,
        backoff: ["0s"],
        run: (_params: unknown, { attempt, log }) => {
          log("trying", { attempt });
          if (attempt < 3) throw new Error("not yet");
        },
      });
      const { book } = await openTest(t, backend, { use: [talk] });
      const worker = await book.startWorker();
      await book.jobs.enqueueMany(talk, [{}, {}]);
      await worker.idle();
      const dry = await book.retain({ jobs: { keep: 1 } });

      const done = await book.retain({ jobs: { keep: 1 }, apply: true });

      assert.deepEqual([done.jobs, done.runs, done.logs, done.slices], [3, 3, 3, 1]);
      assert.deepEqual(dry, { ...done, dryRun: true });
      assert.equal((await book.runs.list()).items.length, 3);
      assert.deepEqual(await book.doctor(), []);
      await assert.rejects(
        book.write(() => book.retain({ jobs: { keep: 0 }, apply: true })),
        { code: "invalid", message: /book.retain was called inside book.write/ },
      );
    });

    test("a rule without a bound, or with one that cannot be meant, is refused", async (t) => {
      const at = await openEngine(t, backend, { use });
      await end(at, plain);
      const wrong: [object | undefined, RegExp][] = [
        [{}, /the rule needs "olderThan", "keep" or both/],
        [{ name: "plain" }, /the rule needs "olderThan", "keep" or both/],
        [{ keep: -1 }, /keep -1 is not a whole number from 0/],
        [{ keep: 1.5 }, /keep 1.5 is not/],
        [{ keep: "5" }, /keep "5" is not a whole number/],
        [{ olderThan: "soon" }, /olderThan is "soon", which is not a duration/],
        [{ olderThan: -1 }, /olderThan is -1, which is not a duration/],
        [{ oldThan: "1d" }, /unknown option "oldThan" for the rule: did you mean "olderThan"\?/],
        [{ keep: 0, status: "queued" }, /status "queued" is not an end: only completed, failed, cancelled, skipped/],
        [{ keep: 0, status: ["failed", "compleet"] }, /status "compleet" is not known: did you mean "completed"\?/],
        [{ keep: 0, status: 5 }, /status 5 is not known. Give completed/],
        [{ keep: 0, status: [] }, /status is an empty list/],
        [{ keep: 0, queue: "" }, /queue "" is empty/],
        [{ keep: 0, name: 5 }, /job name 5/],
      ];

      for (const [options, message] of wrong) {
        await assert.rejects(leave(at, options as never), { code: "invalid", message });
      }
      assert.equal((await ids(at)).length, 1);
    });
  });
}

// What follows is checked by the compiler: a line that should not compile says so.
async function typesOf({ retain }: Book): Promise<number> {
  await retain({ jobs: { olderThan: "1d", status: ["failed", "skipped"] } });
  await retain({ jobs: [{ keep: 5, name: "tick" }, { olderThan: "30d" }], calls: true, apply: true });
  // @ts-expect-error -- only what has ended can leave
  await retain({ jobs: { keep: 0, status: "queued" } });
  // @ts-expect-error -- what stays is said by the policy
  await retain({ jobs: false });
  // @ts-expect-error -- there is no such option
  const { files, slices } = await retain({ jobs: { keep: 0, queues: ["mail"] } });
  return files.length + slices;
}

test("a retention is typed: only ends and known options compile", () => {
  assert.equal(typeof typesOf, "function");
});

const empty = { run: 0, run_log: 0, job_step: 0, run_command: 0 };

type Ended = "success" | "error" | "cancelled" | "lost";

/** A job that was made, claimed and ended; nothing else may be in line. */
async function end(at: TestEngine, definition: Job, how: Ended = "success"): Promise<string> {
  const { id } = await at.jobs.enqueue(definition, {});
  assert.equal(await endNext(at, how), id);
  return id;
}

async function endNext(at: TestEngine, status: Ended): Promise<string | undefined> {
  const [claimed] = await at.claim(1);
  if (claimed !== undefined) await at.end(claimed, { status });
  return claimed?.id;
}

async function queued(at: TestEngine): Promise<string[]> {
  return (await at.jobs.list({ status: "queued" })).items.map(({ id }) => id);
}

/** Two lines, a step and a program with its log file. */
async function decorate(at: TestEngine, id: string): Promise<void> {
  const of = `from daybook_job_now where id = '${id}'`;
  await at.run(`insert into daybook_run_log (tenant_id, run_id, logged_at, level, message)
    select tenant_id, run_id, n, 'info', 'line' from daybook_job_now, ${numbers(2)} where id = '${id}'`);
  await at.run(`insert into daybook_job_step (tenant_id, chain_seq, place, name, run_id, done_at)
    select tenant_id, seq, 1, 'step', run_id, 1 ${of}`);
  await at.run(`insert into daybook_run_command (tenant_id, run_id, job_id, argv, host, pid, started_at, ended_at, log_path)
    select tenant_id, run_id, id, '[]', 'here', 1, 1, 2, 'logs/' || id ${of}`);
}

async function group(at: TestEngine, id: string, members: readonly string[], endedAt: number | null): Promise<void> {
  await at.run(`insert into daybook_job_group (tenant_id, id, mode, on_failure, status, slots, created_at, finished_at)
    values ('default', '${id}', 'parallel', 'continue', '${endedAt === null ? "open" : "partial"}', ${members.length}, 1,
      ${endedAt})`);
  for (const [slot, member] of members.entries()) {
    const belongs = `group_slot = ${slot}, group_seq = (select seq from daybook_job_group where id = '${id}')`;
    await at.run(`update daybook_job set ${belongs} where id = '${member}'`);
    await at.run(`update daybook_line set ${belongs} where seq = (select seq from daybook_job where id = '${member}')`);
  }
}

/** Jobs that were cancelled before they ran, so that each is one row. */
async function cancelled(at: TestEngine, count: number): Promise<void> {
  await at.queues.resume("default");
  await at.run(`insert into daybook_job (tenant_id, id, lane_seq, name, priority, created_at, params, attempts, losses_max,
      cancelled_at)
    select 'default', 'c' || n, lane.seq, 'plain', 0, ${at0}, '{}', 1, 1, ${at0}
    from daybook_lane lane, ${numbers(count)} where lane.tenant_id = 'default' and lane.queue = 'default'`);
}

function numbers(count: number): string {
  return `(with recursive g(n) as (select 1 union all select n + 1 from g where n < ${count}) select n from g) as g`;
}

async function ids(at: TestEngine): Promise<string[]> {
  return (await at.rows<{ id: string }>("select id from daybook_job_now order by seq")).map(({ id }) => id);
}

async function left(at: TestEngine): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of Object.keys(empty)) {
    const [row] = await at.rows<{ count: number }>(`select count(*) as count from daybook_${table}`);
    counts[table] = row?.count ?? 0;
  }
  return counts;
}

function sorted<T extends { readonly files: readonly string[] }>(gone: T): T {
  return { ...gone, files: gone.files.toSorted() };
}
