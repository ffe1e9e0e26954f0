// Jobs of one schedule that wait for each other, when a process is lost, and what the ticker notices.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { settle } from "../../src/jobs/settle/settle.ts";
import type { Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import type { ScheduleOptions } from "../../src/schedules/options.ts";
import { scheduleVerbs } from "../../src/schedules/schedules.ts";
import { fires } from "../../src/schedules/fire.ts";
import { startTicker } from "../../src/schedules/ticker.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, cleanup, type Backend } from "../support/open-test.ts";

const hour = 3_600_000;
const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);
const ports = { kinds: { schedule: fires } };

for (const backend of backends) {
  describe(backend, () => {
    test("a queued job starts when the process of the job before is lost for good, and not sooner", async (t) => {
      const work = job("work", { attempts: 1, losses: 1, run: () => undefined });
      const at = await openEngine(t, backend, { use: [work], clock: manualClock({ at: noon - 1000 }) });
      const verbs = scheduleVerbs(at.engine, (unit) => at.store.write(unit));
      await verbs.create("line", { cron: "* * * * *", job: work, params: {}, overlap: "queue" });
      for (const ms of [1000, minute, minute]) {
        at.clock.step(ms);
        await fireAll(at.store, ports);
      }
      const statuses = async (): Promise<string[]> =>
        (await at.rows<{ status: string }>("select status from daybook_job_now order by seq")).map(
          ({ status }) => status,
        );
      const claimAndLose = async (): Promise<void> => {
        const session = await at.newSession();
        const by = at.claimer(session.seq);
        // After two losses it runs alone, and only then is the next loss its own.
        const { jobs, leftAlone } = await at.claimFully(5, by);
        const claimed = leftAlone ? (await at.claimAlone(by)).jobs : jobs;
        assert.equal(claimed.length, 1);
        await at.store.write((tx) => recoverSession(tx, ports, session.seq));
      };
      assert.deepEqual(await statuses(), ["queued", "waiting", "waiting"]);

      await claimAndLose();
      assert.deepEqual(await statuses(), ["failed", "waiting", "waiting", "queued"], "the retry comes first");
      await claimAndLose();
      assert.deepEqual(await statuses(), ["failed", "waiting", "waiting", "failed", "queued"], "the retry comes first");
      await claimAndLose();
      assert.deepEqual(await statuses(), ["failed", "queued", "waiting", "failed", "failed"], "one goes, and one only");
      const [second] = await at.claim(5);
      const ended = { seq: second?.seq ?? 0, runId: second?.run_id ?? "", durationMs: 1, status: "success" } as const;
      await at.store.write((tx) => settle(tx, ports, [ended]));
      assert.deepEqual((await statuses()).slice(1, 3), ["completed", "queued"]);
    });

    test("a wall clock that jumps forward is noticed within a minute; one that jumps back repeats nothing", async (t) => {
      const { at, ticker, ledger } = await openTicking(t, backend, { cron: "0 * * * *", overlap: "allow" });
      await ticker.tick();

      at.clock.step(2 * hour + 10 * minute); // no timer fires: the machine slept
      await at.clock.advance(minute);
      await ticker.tick();
      assert.deepEqual(await ledger(), ["1 skipped_missed", "2 late"]);

      at.clock.step(-2 * hour);
      for (let half = 0; half < 5; half++) {
        at.clock.step(30 * minute);
        await ticker.tick();
      }
      assert.deepEqual(await ledger(), ["1 skipped_missed", "2 late"]);
      at.clock.step(19 * minute);
      await ticker.tick();
      assert.deepEqual(await ledger(), ["1 skipped_missed", "2 late", "3 fired"]);
    });

    test("a slot that comes due while the ticker looks for the next is fired at once", async (t) => {
      const { at, ticker, ledger } = await openTicking(t, backend, { cron: "0 * * * *" });
      await ticker.stop();
      let looks = 0;
      const read: Store["read"] = async <R>(statement: Sql) => {
        const rows = await at.store.read<R>(statement);
        if (statement.strings[0]?.includes("min(next_at)") && ++looks === 2) at.clock.step(hour);
        return rows;
      };
      const late = startTicker({ store: Object.assign(Object.create(at.store) as Store, { read }), ...ports });
      cleanup(t, () => late.stop());

      await late.tick();
      assert.deepEqual(await ledger(), ["1 fired"]);
    });

    test("while nothing is due, a process looks once a minute", async (t) => {
      let looks = 0;
      const { at, ticker } = await openTicking(t, backend, { daily: "07:00" });
      await ticker.tick();
      await ticker.stop();
      const counting = startTicker({ store: at.store, ...ports }, async () => void looks++);
      cleanup(t, () => counting.stop());
      for (let minutes = 0; minutes < 10; minutes++) {
        await counting.tick();
        await at.clock.advance(minute);
      }
      await counting.tick();
      assert.ok(looks >= 10 && looks <= 11, `${looks} looks in ten minutes`);
    });
  });
}

async function openTicking(t: TestContext, backend: Backend, when: object) {
  const work = job("work", { run: () => undefined });
  const at = await openEngine(t, backend, { use: [work], clock: manualClock({ at: noon + 1 }) });
  const verbs = scheduleVerbs(at.engine, (unit) => at.store.write(unit));
  await verbs.create("hourly", { ...when, job: work, params: {} } as ScheduleOptions);
  const ticker = startTicker({ store: at.store, ...ports });
  cleanup(t, () => ticker.stop());
  const ledger = async (): Promise<string[]> =>
    (
      await at.rows<{ slot_at: number; kind: string }>("select slot_at, kind from daybook_decision order by slot_at")
    ).map(({ slot_at, kind }) => `${(slot_at - noon) / hour} ${kind}`);
  return { at, ticker, ledger };
}
