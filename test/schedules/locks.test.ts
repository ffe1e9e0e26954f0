// On PostgreSQL who ends jobs holds them and waits for their schedules. Who fires holds schedules, and must not wait.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { job, manualClock } from "../../src/index.ts";
import { settle } from "../../src/jobs/settle/settle.ts";
import { fireDue, fires } from "../../src/schedules/fire.ts";
import { scheduleVerbs } from "../../src/schedules/schedules.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { stepBackAll } from "../../src/schedules/step-back.ts";
import { cleanup, openTest } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);
const work = job("work", { run: () => undefined });
const ports = { kinds: { schedule: fires } };

async function openLine(t: TestContext, names: readonly string[], overlap: "cancel" | "queue" | "allow") {
  const at = await openEngine(t, "postgres", { use: [work], clock: manualClock({ at: noon - 1000 }) });
  const verbs = scheduleVerbs(at.engine, (unit) => at.store.write(unit));
  for (const name of names) await verbs.create(name, { cron: "* * * * *", job: work, params: {}, overlap });
  const other = new Client({ connectionString: at.url });
  await other.connect();
  cleanup(t, () => other.end());
  await other.query("set search_path to daybook");
  await other.query("begin");
  const fire = async (ms: number): Promise<boolean> => {
    at.clock.step(ms);
    return at.store.write((tx) => fireDue(tx, ports));
  };
  return { at, other, fire, trigger: verbs.trigger };
}

const statuses = async (at: TestEngine): Promise<string[]> =>
  (await at.rows<{ status: string }>("select status from daybook_job_now order by seq")).map(({ status }) => status);

/** Ends what is queued, and comes back once that is done or waits for a lock. */
async function endAndMeet(at: TestEngine): Promise<{ readonly ending: Promise<unknown> }> {
  const claimed = await at.claim(5);
  const endings = claimed.map(({ seq, run_id }) => ({ seq, runId: run_id, durationMs: 1, status: "success" as const }));
  let done = false;
  const ending = at.store.write((tx) => settle(tx, ports, endings)).finally(() => (done = true));
  const waiting = `select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  while (!done && (await at.rows(waiting)).length === 0) continue;
  return { ending };
}

test("cancel does not wait for a job that another transaction is ending: the next look decides the slot", async (t) => {
  const { at, other, fire } = await openLine(t, ["minutes"], "cancel");
  await fire(1000);
  await other.query("select seq from daybook_line for update");

  assert.equal(await fire(minute), false);
  assert.deepEqual(await statuses(at), ["queued"]);
  await other.query("select seq from daybook_schedule for update nowait");
  await other.query("rollback");

  await fire(100);
  assert.deepEqual(await statuses(at), ["cancelled", "queued"]);
});

test("a schedule that another transaction holds when the clock is right again steps back once it is free", async (t) => {
  const clock = manualClock({ at: noon + 5000 });
  const { book, url } = await openTest(t, "postgres", { use: [work], clock });
  await book.schedules.create("often", { every: "10s", job: work, params: {} });
  const worker = await book.startWorker();
  const { store } = roomsOf(book);
  clock.step(50_000);
  await until("the clock that is ahead has fired", async () =>
    ((await book.schedules.get("often")).nextAt ?? 0) > noon + 50_000 ? true : undefined,
  );
  await worker.idle();
  const other = new Client({ connectionString: url });
  await other.connect();
  cleanup(t, () => other.end());
  await other.query("begin");
  await other.query("select seq from daybook.daybook_schedule for update");

  clock.step(-50_000);
  await book.write(() => undefined);

  // The book's own look came before this one, which is told to look again.
  assert.equal(await stepBackAll(store, { aheadMs: 0 }), false);
  await other.query("rollback");
  await until("the cursor has stepped back", async () =>
    ((await book.schedules.get("often")).nextAt ?? Infinity) < noon + 50_000 ? true : undefined,
  );
});

test("a batch of ended jobs locks its schedules in one order, whatever the order of the jobs", async (t) => {
  const { at, other, trigger } = await openLine(t, ["first", "second"], "allow");
  await trigger("second");
  await trigger("first");
  await other.query("select seq from daybook_schedule where name = 'first' for update");

  const { ending } = await endAndMeet(at);
  // It waits for the first, so it must not hold the second: who holds the first may ask for it.
  await other.query("select seq from daybook_schedule where name = 'second' for update nowait");
  await other.query("commit");
  await ending;

  assert.deepEqual(await statuses(at), ["completed", "completed"]);
});

test("the next queued job is released even if another transaction has it locked at that moment", async (t) => {
  const { at, other, fire } = await openLine(t, ["minutes"], "queue");
  await fire(1000);
  await fire(minute);
  await other.query("select seq from daybook_line where status = 'waiting' for update");

  const { ending } = await endAndMeet(at);
  await other.query("rollback");
  await ending;

  assert.deepEqual(await statuses(at), ["completed", "queued"]);
});
