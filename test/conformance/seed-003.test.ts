// Seed 003 (job scheduler persistence), line by line: its recovery decision matrix (§4.5) and its checklist (§7), read
// through the views that have its names. Where a state of the matrix cannot exist here, the test shows why.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { checks } from "../../src/book/doctor.ts";
import { recoverSession, sweep } from "../../src/jobs/settle/rescue.ts";
import { askForTurn, declareDead, reservationsOf, takeDirect } from "../jobs/direct.ts";
import { createFuse } from "../jobs/fuse.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine as openBare, type TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";
import { createViews } from "../../src/storage/view.ts";
import { views } from "../../src/open/migrations.ts";

const story = job("story", { attempts: 4, backoff: ["1s"], run: () => undefined });
const use = [story];

type Line = { job_id: string; status: string; retry_of: string | null; finished_at: number | null };
type RunLine = {
  run_id: string;
  job_id: string;
  status: string | null;
  finished_at: number | null;
  error: string | null;
};

const openEngine: typeof openBare = async (...args) => {
  const at = await openBare(...args);
  await createViews(at.store, views);
  return at;
};
const jobs = (at: TestEngine): Promise<Line[]> =>
  at.rows<Line>("select job_id, status, retry_of, finished_at from jobs order by job_id");
const runs = (at: TestEngine): Promise<RunLine[]> =>
  at.rows<RunLine>("select run_id, job_id, status, finished_at, error from job_runs order by run_id");
/** §3.1: the order, by the statement of the seed. */
const queue = async (at: TestEngine): Promise<string[]> =>
  (
    await at.rows<{ job_id: string }>(`select job_id from jobs where status = 'QUEUED'
      order by priority desc, position asc, created_at asc`)
  ).map(({ job_id }) => job_id);
/** §5.1: what the seed looks for at every start. */
const runningWithoutRun = (at: TestEngine): Promise<unknown[]> =>
  at.rows(`select j.* from jobs j left join job_runs jr on j.job_id = jr.job_id
    where j.status = 'RUNNING' and jr.run_id is null`);
const reservations = async (at: TestEngine): Promise<string[]> =>
  (
    await at.rows<{ status: string }>("select status from direct_reservations order by reserved_at, reservation_id")
  ).map(({ status }) => status);
const everything = async (at: TestEngine): Promise<unknown> => [
  await at.dump(),
  await at.rows("select * from daybook_reservation order by seq"),
  await at.rows("select * from daybook_job_group order by seq"),
];

for (const backend of backends) {
  describe(`${backend}, §4.5`, () => {
    test("QUEUED, JobRun N/A: resume in queue (no action)", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made = await at.jobs.enqueueMany(story, [{}, {}, {}]);
      const urgent = await at.jobs.enqueue(story, {}, { priority: 5 });
      const before = await everything(at);

      const restarted = await openEngine(t, backend, { use, url: at.url, clock: at.clock });
      assert.equal(await sweep(restarted.engine), 0);

      assert.deepEqual(await everything(restarted), before);
      assert.deepEqual(await queue(restarted), [urgent.id, ...made.map(({ id }) => id)]);
      assert.deepEqual(
        (await restarted.claim(4)).map(({ id }) => id),
        [urgent.id, ...made.map(({ id }) => id)],
      );
    });

    test("RUNNING, JobRun exists: no. It cannot be: the table refuses it, and the job stays QUEUED", async (t) => {
      const fuse = createFuse(backend);
      const at = await openEngine(t, backend, { use, fault: fuse.fault });
      const { id } = await at.jobs.enqueue(story, {});

      await assert.rejects(
        at.run(
          `update daybook_line set status = 'running', started_at = 1, session_seq = ${at.session.seq}
            where seq = (select seq from daybook_job where id = '${id}')`,
        ),
        /check/i,
      );
      const failures = await fuse.burn(
        () => at.claim(1),
        async () => [await queue(at), await runs(at), await runningWithoutRun(at)],
      );

      assert.ok(failures > 2, `${failures} failures`);
      assert.deepEqual(
        [(await jobs(at)).map(({ status }) => status), (await runs(at)).length],
        [["RUNNING"], 1],
        "the state and the run, or neither",
      );
    });

    test("RUNNING, JobRun exists, not terminal: update to FAILED, retry", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(story, { chapter: 1 });
      const owner = await at.newSession();
      await at.claim(1, at.claimer(owner.seq));
      assert.deepEqual(
        (await runs(at)).map(({ job_id, status }) => [job_id, status]),
        [[id, null]],
      );
      await declareDead(at, owner);

      assert.deepEqual([await sweep(at.engine), await sweep(at.engine)], [1, 0]);

      const [run, ...others] = await runs(at);
      assert.deepEqual([run?.job_id, run?.status, others], [id, "FAILED", []]);
      assert.match(run?.error ?? "", /session lost/);
      const [first, second, ...more] = await jobs(at);
      assert.deepEqual([first?.status, first?.finished_at, more], ["FAILED", run?.finished_at, []]);
      assert.deepEqual([second?.status, second?.retry_of], ["QUEUED", id]);
      const [params] = await at.rows<{ params: string }>(`select params from jobs where retry_of = '${id}'`);
      assert.deepEqual(JSON.parse(params?.params ?? ""), { chapter: 1 });
      await assertInvariants(at);
    });

    test("RUNNING, JobRun terminal. It cannot be: finished_at is written with the run, or neither is", async (t) => {
      const fuse = createFuse(backend);
      const at = await openEngine(t, backend, { use, fault: fuse.fault });
      const { id } = await at.jobs.enqueue(story, {});
      const [claimed] = await at.claim(1);
      assert.ok(claimed !== undefined);

      const failures = await fuse.burn(
        () => at.end(claimed, { status: "success" }),
        async () => [await jobs(at), await runs(at)],
      );

      assert.ok(failures > 1, `${failures} failures`);
      const [ended] = await jobs(at);
      const [run] = await runs(at);
      assert.deepEqual([ended?.job_id, ended?.status, run?.status], [id, "COMPLETED", "COMPLETED"]);
      assert.equal(ended?.finished_at, run?.finished_at);
      // Recovery that comes later changes nothing, and neither does the owner's second word.
      const done = await everything(at);
      await at.store.write((tx) => recoverSession(tx, { kinds: {} }, at.session.seq));
      await at.end(claimed, { status: "error" });
      assert.deepEqual(await everything(at), done);
    });

    test("Direct Reservation ACTIVE: expire if stale, resume queue", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made = await at.jobs.enqueueMany(story, [{}, {}]);
      const owner = await at.newSession();
      const turn = await askForTurn(at, { by: owner });
      await at.clock.advance(599_999);
      assert.deepEqual([await sweep(at.engine), await reservations(at), await at.claim(2)], [0, ["ACTIVE"], []]);
      await at.clock.advance(1);

      assert.equal(await sweep(at.engine), 1);

      assert.deepEqual(await reservations(at), ["EXPIRED"]);
      assert.equal((await at.jobs.get(turn.jobId)).status, "cancelled", "no duplicate execution: it never started");
      assert.deepEqual((await takeDirect(at, turn)).jobs, []);
      assert.deepEqual(
        (await at.claim(2)).map(({ id }) => id),
        made.map(({ id }) => id),
      );
      // The caller may ask again, which makes a new reservation.
      await askForTurn(at, { by: owner });
      assert.deepEqual(await reservations(at), ["EXPIRED", "ACTIVE"]);
    });
  });

  describe(`${backend}, §7`, () => {
    test("All Job state transitions are transactional", async (t) => {
      const fuse = createFuse(backend);
      const at = await openEngine(t, backend, { use, fault: fuse.fault });
      const look = (): Promise<unknown> => everything(at);
      const [one, two] = await at.jobs.enqueueMany(story, [{}, {}]);
      const group = await at.groups.create({ mode: "sequential", onFailure: "skip" }, (members) => {
        for (let n = 0; n < 3; n++) members.add(story, {}, { attempts: 1, priority: -1 });
      });
      const claimOne = async () => (await at.claim(1))[0] as NonNullable<Awaited<ReturnType<typeof at.claimFrom>>>;
      const transitions: Record<string, () => Promise<unknown>> = {
        "created → QUEUED": () => at.jobs.enqueueMany(story, [{}, {}], { priority: -5 }),
        "QUEUED → CANCELLED": () => at.jobs.cancel(two?.id ?? ""),
        "moved in line": () => at.jobs.move(one?.id ?? "", "last"),
        "QUEUED → RUNNING": () => at.claim(1),
      };
      const failed: Record<string, number> = {};
      for (const [what, verb] of Object.entries(transitions)) failed[what] = await fuse.burn(verb, look);
      const [running] = await at.rows<{ seq: number; run_id: string }>(
        "select seq, run_id from daybook_job_now where status = 'running'",
      );
      assert.ok(running !== undefined);
      failed["RUNNING → FAILED, with its retry"] = await fuse.burn(() => at.end(running, { status: "error" }), look);
      const member = await claimOne();
      failed["RUNNING → FAILED, the rest of its group SKIPPED"] = await fuse.burn(
        () => at.end(member, { status: "error" }),
        look,
      );
      const last = await claimOne();
      failed["RUNNING → CANCELLED, made again at shutdown"] = await fuse.burn(
        () => at.end(last, { status: "cancelled", shutdown: true }),
        look,
      );
      const lost = await at.newSession();
      await at.claim(1, at.claimer(lost.seq));
      await declareDead(at, lost);
      failed["RUNNING → FAILED, lost"] = await fuse.burn(
        () => at.store.write((tx) => recoverSession(tx, { kinds: {} }, lost.seq)),
        look,
      );

      assert.deepEqual(
        Object.entries(failed).filter(([, times]) => times === 0),
        [],
        "it never failed",
      );
      assert.deepEqual(await at.rows("select group_id, status from job_groups"), [
        { group_id: group.id, status: "PARTIAL" },
      ]);
      assert.deepEqual(
        new Set((await jobs(at)).map(({ status }) => status)),
        new Set(["QUEUED", "CANCELLED", "FAILED", "SKIPPED"]),
      );
      await assertInvariants(at);
    });

    test("JobRun is created atomically with RUNNING transition", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made = await at.jobs.enqueueMany(story, [{}, {}, {}]);

      const claimed = await at.claim(2);

      assert.deepEqual(await runningWithoutRun(at), []);
      const open = (await runs(at)).filter(({ status }) => status === null);
      assert.deepEqual(
        open.map(({ run_id, job_id }) => [run_id, job_id]),
        claimed.map(({ run_id, id }) => [run_id, id]),
      );
      const running = (await jobs(at)).filter(({ status }) => status === "RUNNING");
      assert.deepEqual(
        running.map(({ job_id }) => job_id),
        made.slice(0, 2).map(({ id }) => id),
      );
    });

    test("No in-memory-only job state exists", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(story, [{}, {}, {}, {}]);
      await at.jobs.enqueue(story, {}, { in: "1h" });
      const [first] = await at.claim(1);
      await reservationsOf(at).reserve("other");
      assert.ok(first !== undefined);

      // Nothing is closed, and nothing said goodbye: whoever opens the book knows as much as the first.
      const other = await openEngine(t, backend, { use, url: at.url, clock: at.clock });

      assert.deepEqual(await everything(other), await everything(at));
      assert.deepEqual(await queue(other), await queue(at));
      const expected = (await queue(at)).slice(0, 3);
      assert.deepEqual(
        (await other.claim(10)).map(({ id }) => id),
        expected,
      );
      const { late } = await other.end(first, { status: "success" });
      assert.equal(late.size, 0);
      assert.equal((await at.jobs.get(first.id)).status, "completed");
    });

    test("Queue order is deterministic from SQLite query", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made: string[] = [];
      for (const priority of [0, 5, -3, 5, 0, 1000, -1000]) {
        made.push((await at.jobs.enqueue(story, {}, { priority })).id);
      }
      await at.jobs.move(made[4] ?? "", "first");
      const other = await openEngine(t, backend, { use, url: at.url, clock: at.clock });

      const order = await queue(at);

      assert.deepEqual([await queue(at), await queue(other)], [order, order]);
      assert.deepEqual(
        order,
        [5, 1, 3, 4, 0, 2, 6].map((place) => made[place]),
      );
      const claimed: string[] = [];
      for (let next = await at.claim(1); next[0] !== undefined; next = await at.claim(1)) claimed.push(next[0].id);
      assert.deepEqual(claimed, order);
    });

    test("Direct reservation survives crash", async (t) => {
      const at = await openEngine(t, backend, { use });
      const [waiting] = await at.jobs.enqueueMany(story, [{}]);
      const owner = await at.newSession();
      await askForTurn(at, { by: owner });

      const restarted = await openEngine(t, backend, { use, url: at.url, clock: at.clock });
      assert.deepEqual([await reservations(restarted), await restarted.claim(5)], [["ACTIVE"], []]);
      await assert.rejects(reservationsOf(restarted).reserve("default"), { code: "conflict" });

      // The restart learns that the owner is dead, and need not wait for the ten minutes to be over.
      await declareDead(restarted, owner);
      assert.equal(await sweep(restarted.engine), 1);
      assert.deepEqual(await reservations(restarted), ["EXPIRED"]);
      assert.deepEqual(
        (await restarted.claim(5)).map(({ id }) => id),
        [waiting?.id],
      );
    });

    test("Retry chain is traceable via `retry_of`", async (t) => {
      const at = await openEngine(t, backend, { use });
      const { id } = await at.jobs.enqueue(story, {});
      for (let attempt = 1; attempt <= 4; attempt++) {
        const { claim } = await at.turn(1, at.claimer(), { lookForDue: true });
        assert.ok(claim.jobs[0] !== undefined);
        await at.end(claim.jobs[0], { status: "error" });
        await at.clock.advance(1000);
      }

      const chain = await at.rows<{ job_id: string; length: number }>(`
        with recursive chain (job_id, length) as (
          select job_id, 1 from jobs where retry_of is null
          union all select jobs.job_id, chain.length + 1 from chain join jobs on jobs.retry_of = chain.job_id
        ) select job_id, length from chain order by length`);

      assert.deepEqual(
        chain.map(({ length }) => length),
        [1, 2, 3, 4],
      );
      assert.deepEqual(
        chain.map(({ job_id }) => job_id),
        (await at.jobs.chain(id)).map((each) => each.id),
      );
      assert.deepEqual(
        (await jobs(at)).map(({ status }) => status),
        ["FAILED", "FAILED", "FAILED", "FAILED"],
        "max reached",
      );
    });

    test("All invariants have enforcement mechanism", async (t) => {
      const at = await openEngine(t, backend, { use });
      await at.jobs.enqueueMany(story, [{}, {}]);
      const [claimed] = await at.claim(1);
      await askForTurn(at);
      const impossible = {
        "5.1 No RUNNING without JobRun": "update daybook_line set run_id = null where status = 'running'",
        "5.3 RUNNING job cannot return to QUEUED": "update daybook_line set status = 'queued' where status = 'running'",
        "5.5 at most one reservation may be ACTIVE": `insert into daybook_reservation
          (tenant_id, id, lane_seq, session_seq, reserved_at, expires_at, lasts_ms)
          select tenant_id, 'second', lane_seq, session_seq, reserved_at, expires_at, lasts_ms from daybook_reservation`,
      };
      for (const [line, statement] of Object.entries(impossible)) {
        await assert.rejects(at.run(statement), /check|unique/i, line);
      }
      // 5.3 by the claim: the second gets nothing of what the first has, and only the owner's word counts.
      assert.deepEqual(await at.claim(1, at.claimer((await at.newSession()).seq)), []);
      const foreign = await at.end({ seq: claimed?.seq ?? 0, run_id: "not mine" }, { status: "success" });
      assert.equal(foreign.late.size, 1);
      // What a table cannot refuse is found by doctor.
      const asked = async (promise: string): Promise<number> => {
        const found = checks
          .filter((each) => each.promise === promise)
          .map(({ find }) => at.store.read(find(at.store.dialect, at.store.clock.now())));
        return (await Promise.all(found)).flat().length;
      };
      assert.deepEqual([await asked("J2"), await asked("J7")], [0, 0]);
      await at.run(`insert into daybook_run (tenant_id, id, kind, name, job_seq, attempt, started_at, ended_at, duration_ms, status)
        values ('default', 'orphan', 'job', 'story', 99, 1, 1, 1, 1, 'success')`);
      await at.jobs.enqueue(story, {});
      await at.run("update daybook_line set position = 1 where status = 'queued'");
      assert.deepEqual([await asked("J2"), await asked("J7")], [1, 1], "5.2 no orphan JobRuns, 5.4 queue order");
    });

    test("Recovery scenarios are documented and tested: §4.1 clean shutdown restart", async (t) => {
      const at = await openEngine(t, backend, { use });
      const made = await at.jobs.enqueueMany(story, [{}, {}]);
      const { id } = await reservationsOf(at).reserve("default");
      await reservationsOf(at).release(id);
      const [shutDown] = (await at.claim(1)) as [ClaimedJob];
      await at.end(shutDown, { status: "cancelled", shutdown: true });
      const { retriedBy } = await at.jobs.get(shutDown.id);
      await at.store.close();

      const restarted = await openEngine(t, backend, { use, url: at.url, clock: at.clock });

      assert.deepEqual(
        (await jobs(restarted)).map(({ status }) => status),
        ["CANCELLED", "QUEUED", "QUEUED"],
        "no RUNNING jobs",
      );
      assert.deepEqual(await reservations(restarted), ["RELEASED"]);
      assert.deepEqual(
        (await restarted.claim(2)).map((each) => each.id),
        [retriedBy, made[1]?.id],
      );
    });

    test("Recovery scenarios are documented and tested: §4.4 crash during retry scheduling", async (t) => {
      const fuse = createFuse(backend);
      const at = await openEngine(t, backend, { use, fault: fuse.fault });
      const { id } = await at.jobs.enqueue(story, {});
      const [claimed] = await at.claim(1);
      assert.ok(claimed !== undefined);
      // The seed's statement: what failed and has no retry, though it may have one.
      const forgotten = (): Promise<unknown[]> =>
        at.rows(`select jr.job_id from job_runs jr join jobs j on jr.job_id = j.job_id
          where jr.status = 'FAILED' and j.finished_at is not null
            and not exists (select 1 from jobs child where child.retry_of = jr.job_id)`);

      const failures = await fuse.burn(
        () => at.end(claimed, { status: "error" }),
        async () => [await jobs(at), await runs(at), await forgotten()],
      );

      assert.ok(failures > 3, `${failures} failures`);
      assert.deepEqual(await forgotten(), []);
      // Retry creation is idempotent: the same ending once more makes nothing.
      const once = await everything(at);
      await at.end(claimed, { status: "error" });
      assert.deepEqual(await everything(at), once);
      assert.deepEqual(
        (await at.jobs.chain(id)).map(({ status }) => status),
        ["failed", "waiting"],
      );
    });
  });
}
