// What a review found in what is built around the engine, and must not come back.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type JobContext } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { settle } from "../../src/jobs/settle/settle.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import { assertInvariants } from "../jobs/model.ts";
import { heldJob } from "../jobs/handlers.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { leave } from "../jobs/leave.ts";
import { whileTimePasses } from "../support/session-row.ts";

const work = job("work", { attempts: 2, backoff: ["10ms"], run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("of two members that end in one turn, the one that is tried again keeps the group open", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.groups.create({ mode: "parallel" }, (group) => {
        group.add(work, {});
        group.add(work, {});
      });
      const claimed = await at.claim(2);
      const statuses = ["success", "error"] as const;
      await at.store.write((tx) =>
        settle(
          tx,
          at.engine,
          claimed.map(({ seq, run_id }, index) => ({
            seq,
            runId: run_id,
            durationMs: 1,
            status: statuses[index] ?? "success",
          })),
        ),
      );
      assert.equal((await at.groups.get(id)).status, "open");
      await assertInvariants(at);
      await at.clock.advance(10);
      const { claim } = await at.turn(1, at.claimer(), { lookForDue: true });
      for (const each of claim.jobs) await at.end(each, { status: "success" });
      assert.equal((await at.groups.get(id)).status, "completed");
    });

    test("a member that ends while another one finishes does not leave the group open", async (t) => {
      const gate = Promise.withResolvers<void>();
      const began = Promise.withResolvers<void>();
      const slow = job("slow", {
        run: (_params: unknown, { finish }: JobContext) =>
          finish(async (tx) => {
            await tx.sql`select count(*) from daybook_job_now`;
            began.resolve();
            await gate.promise;
          }),
      });
      const held = heldJob("held");
      // Time stands still while the finish waits: a transaction may wait for others for a second only.
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [slow, held.job], clock });
      const { id } = await book.groups.create({ mode: "parallel" }, (group) => {
        group.add(slow, {});
        group.add(held.job, {});
      });
      await book.startWorker();
      const { succeed } = await held.whenBegun(1);
      await began.promise;
      succeed();
      // On SQLite the one writer is the finish itself; on PostgreSQL the other one is settled beside it.
      const ended = async (): Promise<number> => (await book.jobs.list({ status: "completed" })).items.length;
      while (backend === "postgres" && (await ended()) < 1) await new Promise((resolve) => setImmediate(resolve));
      gate.resolve();
      assert.equal((await whileTimePasses(clock, book.groups.wait(id))).status, "completed");
      assert.deepEqual(await book.doctor(), []);
    });

    test("a group may be built by an async function, and not after it is made", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      let late: (() => void) | undefined;
      const { jobs } = await book.groups.create({ mode: "parallel" }, async (group) => {
        group.add(work, {});
        await Promise.resolve();
        group.add(work, {});
        late = () => group.add(work, {});
      });
      assert.equal(jobs.length, 2);
      assert.throws(() => late?.(), /after the group was made/);
    });

    test("a step that threw is called again at its own place, and kept there", async (t) => {
      const calls: string[] = [];
      const charges = job("charges", {
        attempts: 2,
        backoff: ["0ms"],
        async run(_params: unknown, { step, attempt }: JobContext) {
          for (let tries = 1; tries <= 2; tries++) {
            const done = step("charge", () => {
              calls.push("charge");
              if (calls.length === 1) throw new Error("no answer");
              return calls.length;
            }).then(
              () => true,
              () => false,
            );
            if (await done) break;
          }
          await step("mail", () => void calls.push("mail"));
          if (attempt === 1) throw new Error("later");
        },
      });
      const { book } = await openTest(t, backend, { use: [charges] });
      const made = await book.jobs.enqueue(charges, {});
      await book.startWorker();
      await made.result();
      assert.deepEqual(calls, ["charge", "charge", "mail"]);
    });

    test("direct work in one's own queue, or in one that is held by hand, is refused instead of waited for", async (t) => {
      const inner = job("inner", { run: () => "ran" });
      const outer = job("outer", {
        attempts: 1,
        run: (_params: unknown, { book }: JobContext) => book.jobs.runNow(inner, {}),
      });
      const { book } = await openTest(t, backend, { use: [inner, outer] });
      await book.startWorker();
      const made = await book.jobs.enqueue(outer, {});
      await assert.rejects(made.result(), /runs in queue "default" and cannot run direct work there/);
      await book.reservations.reserve("held");
      await assert.rejects(book.jobs.runNow(inner, {}, { queue: "held" }), {
        code: "conflict",
        message: /this process holds it itself, so release it first/,
      });
    });

    test("one that runs alone after a loss may run direct work", async (t) => {
      const inner = job("inner", { run: () => "ran" });
      const outer = job("outer", {
        run: (_params: unknown, { book }: JobContext) => book.jobs.runNow(inner, {}, { queue: "other" }),
      });
      const { book, url } = await openTest(t, backend, { use: [inner, outer] });
      const made = await book.jobs.enqueue(outer, {});
      const { store } = await openTestStore(t, backend, { url });
      await store.write((tx) => tx.run(rawSql("update daybook_job set alone = 2")));
      await book.startWorker();
      assert.equal(await made.result(), "ran");
    });

    test("retention takes a group whose member was tried again after its end, and leaves a program that nobody ended", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      await at.groups.create({ mode: "parallel", onFailure: "continue" }, (group) =>
        group.add(work, {}, { attempts: 1 }),
      );
      const [first] = await at.claim(1);
      await at.end(first ?? assert.fail(), { status: "error" });
      await at.jobs.retry(first?.id ?? "");
      const [second] = await at.claim(1);
      await at.end(second ?? assert.fail(), { status: "success" });
      await at.run(`insert into daybook_run_command (tenant_id, run_id, job_id, argv, host, started_at)
        values ('default', '${second?.run_id}', '${second?.id}', '[]', 'elsewhere', 1)`);
      await at.jobs.enqueue(work, {});
      await at.clock.advance(1000);

      assert.equal((await leave(at, { olderThan: 0 })).jobs, 0);
      await at.run("update daybook_run_command set ended_at = 2");
      assert.equal((await leave(at, { olderThan: 0 })).jobs, 2);
      await assertInvariants(at);
    });
  });
}

test("postgres: a member whose process shuts down while its group is cancelled is not made again", async (t) => {
  const at = await openEngine(t, "postgres", { use: [work] });
  const { id } = await at.groups.create({ mode: "parallel" }, (group) => group.add(work, {}));
  const [claimed] = (await at.claim(1)) as [ClaimedJob];
  const gate = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = at.store.write(async (tx) => {
    await tx.all(sql`select seq from daybook_line where seq = ${claimed.seq} for update`);
    locked.resolve();
    await gate.promise;
  });
  await locked.promise;
  const cancelled = await at.groups.cancel(id);
  assert.equal(cancelled.status, "cancelling");
  gate.resolve();
  await holding;
  await at.end(claimed, { status: "cancelled", shutdown: true });
  const { status, retriedBy } = await at.jobs.get(claimed.id);
  assert.deepEqual([status, retriedBy], ["cancelled", null]);
  assert.equal((await at.groups.get(id)).status, "cancelled");
});
