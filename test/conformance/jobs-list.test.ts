// Lists of jobs: what each filter finds and refuses, and how the databases would read them.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { Client } from "pg";
import { app, job, listener, manualClock, type Book, type JobFilter } from "../../src/index.ts";
import { listJobs } from "../../src/jobs/explain/list.ts";
import { render, type Sql } from "../../src/storage/sql.ts";
import type { Some } from "../../src/storage/store.ts";
import { openCalls } from "../calls/target.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const work = job<object>("work", { attempts: 2, backoff: ["1h"], run: () => undefined });
const fails = job<object>("fails", {
  attempts: 2,
  backoff: ["1h"],
  run: () => {
    throw new Error("no");
  },
});

const idsOf = async (book: Pick<Book, "jobs">, filter: JobFilter): Promise<string[]> =>
  (await book.jobs.list(filter)).items.map(({ id }) => id);
const namesOf = async (book: Book, filter?: JobFilter): Promise<string[]> =>
  (await book.jobs.list(filter)).items.map(({ name }) => name).toSorted();

for (const backend of backends) {
  describe(backend, () => {
    test("a list has jobs, those of schedules and direct ones; deliveries, catch-ups and calls when they are asked for", async (t) => {
      const tell = listener("tell", { on: "said", run: () => undefined });
      const late = listener("late", { on: "other", run: () => undefined });
      const { book } = await openCalls(t, backend, { use: [work, tell, late] });
      await book.events.publish("said", {});
      await book.listeners.rewind("late", "beginning");
      await book.calls.submit({ url: "https://example.org/", in: "1h" });
      await book.jobs.enqueue(work, {}, { in: "1h" });
      await book.schedules.create("hourly", { every: "1h", job: work, queue: "fired" });
      await book.schedules.trigger("hourly");
      await book.jobs.runNow(work, {}, { queue: "direct" });

      assert.deepEqual(await namesOf(book), ["work", "work", "work"]);
      for (const [kind, names] of [
        ["job", ["work"]],
        ["schedule", ["work"]],
        ["direct", ["work"]],
        ["delivery", ["listener:tell"]],
        ["catch_up", ["listener:late"]],
        ["call", ["daybook.call"]],
        [
          ["job", "call"],
          ["daybook.call", "work"],
        ],
        [
          ["direct", "schedule"],
          ["work", "work"],
        ],
        ["all", ["daybook.call", "listener:late", "listener:tell", "work", "work", "work"]],
      ] as const) {
        assert.deepEqual(await namesOf(book, { kind }), names, String(kind));
      }
      assert.deepEqual(await namesOf(book, { name: "listener:tell" }), ["listener:tell"]);
      assert.deepEqual(await namesOf(book, { name: "daybook.call" }), ["daybook.call"]);
      assert.deepEqual(await namesOf(book, { name: "daybook.call", kind: "job" }), []);
      assert.deepEqual(await namesOf(book, { queue: "events" }), []);
      assert.deepEqual(await namesOf(book, { queue: "events", kind: "delivery" }), ["listener:tell"]);
    });

    test("a group's jobs are found with their retries, in every state", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work, fails], clock });
      const { id: group } = await book.groups.create({ name: "release", mode: "parallel" }, (it) => {
        it.add(work, {});
        it.add(fails, {});
      });
      await book.jobs.enqueue(work, {}, { in: "1h" });
      const worker = await book.startWorker();
      await worker.idle();

      const states = async (filter: JobFilter): Promise<string[]> =>
        (await book.jobs.list({ group, ...filter })).items.map(({ name, status }) => `${name} ${status}`);
      assert.deepEqual(await states({}), ["fails waiting", "fails failed", "work completed"]);
      assert.deepEqual(await states({ status: "failed" }), ["fails failed"]);
      assert.deepEqual(await states({ status: ["waiting", "queued"] }), ["fails waiting"]);
      assert.deepEqual(await states({ status: "running" }), []);
      assert.deepEqual(await states({ name: "work" }), ["work completed"]);
      const first = await book.jobs.list({ group, limit: 2 });
      const second = await book.jobs.list({ group, limit: 2, after: first.next ?? "" });
      assert.deepEqual([first.items.length, second.items.length, second.next], [2, 1, null]);
      await assert.rejects(book.tenant("acme").jobs.list({ group }), { code: "not_found" });
    });

    test("what a schedule fired is found by its name, also when an app has it", async (t) => {
      const home = app("home", { setup: (it) => void it.every("1h", { name: "hourly" }, () => undefined) });
      const { book } = await openTest(t, backend, { use: [work, home], clock: manualClock() });
      for (const name of ["hourly", "daily"]) {
        await book.schedules.create(name, { every: "1h", job: work, overlap: "allow" });
        await book.schedules.trigger(name);
      }
      await book.schedules.trigger("default/home/0/hourly");
      await book.schedules.trigger("hourly");

      const fired = async (schedule: string): Promise<string[]> => namesOf(book, { schedule });
      assert.deepEqual(await fired("hourly"), ["work", "work"]);
      assert.deepEqual(await fired("daily"), ["work"]);
      assert.deepEqual(await fired("default/home/0/hourly"), ["default/home/0/hourly"]);
      assert.deepEqual(await fired("weekly"), []);
      assert.deepEqual(await namesOf(book, { schedule: "daily", kind: "job" }), []);
    });

    test("what was made from a template is found by its name", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      for (const name of ["one", "two"]) await book.templates.create(name, { job: work, params: {} });
      const made = await book.jobs.enqueueFrom("one");
      await book.jobs.enqueueFrom("two");
      await book.templates.archive("one");

      assert.deepEqual(await idsOf(book, { template: "one" }), [made.id]);
      await assert.rejects(book.jobs.list({ template: "onee" }), {
        code: "not_found",
        message: /there is no template "onee": did you mean "one"\?/,
      });
    });

    test("since takes in its moment, until leaves it out, and both count when a job was made", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use: [work], clock });
      const start = clock.now();
      const ids: string[] = [];
      for (let hour = 0; hour < 3; hour++) {
        ids.push((await book.jobs.enqueue(work, {}, { in: "9h" })).id);
        clock.step(3_600_000);
      }
      const [one, two, three] = ids;

      assert.deepEqual(await idsOf(book, { since: start + 3_600_000 }), [three, two]);
      assert.deepEqual(await idsOf(book, { until: start + 3_600_000 }), [one]);
      assert.deepEqual(await idsOf(book, { since: start + 1, until: new Date(start + 3_600_001) }), [two]);
      assert.deepEqual(await idsOf(book, { since: new Date(start + 7_200_000).toISOString() }), [three]);
      assert.deepEqual(await idsOf(book, { since: "2h", status: "waiting" }), [three, two]);
    });

    test("a filter that is not known or has no such value is refused", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      const wrong: [filter: object, code: string, message: RegExp][] = [
        [{ groop: "x" }, "invalid", /unknown option "groop" for the list of jobs: did you mean "group"\?/],
        [{ group: "x" }, "not_found", /there is no group "x"/],
        [{ group: 7 }, "invalid", /group 7 is not the id of a group/],
        [{ schedule: "" }, "invalid", /schedule ""/],
        [{ schedule: 7 }, "invalid", /schedule 7/],
        [{ template: "x" }, "not_found", /there is no template "x"/],
        [{ template: "" }, "invalid", /template ""/],
        [{ kind: "delivry" }, "invalid", /kind "delivry" is not known: did you mean "delivery"\? Known: job, schedule/],
        [{ kind: "x" }, "invalid", /kind "x" is not known\. Known: job/],
        [{ kind: [] }, "invalid", /kind is an empty list/],
        [{ since: "yesterday" }, "invalid", /since is "yesterday", which is not a time/],
        [{ until: "2026-01-31" }, "invalid", /until is "2026-01-31", which has no time of day with a zone/],
        [{ since: 20, until: 20 }, "invalid", /since 1970-01-01T00:00:00.020Z is not before until/],
      ];

      for (const [filter, code, message] of wrong) {
        await assert.rejects(book.jobs.list(filter), { code, message }, JSON.stringify(filter));
      }
    });

    test("a page is read backwards until it is full, open jobs from the line, and nothing else is sorted", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const made = await at.groups.create({ mode: "parallel" }, (it) => it.add(work, {}));
      await fill(at);
      const usual: JobFilter[] = [
        {},
        { kind: "all" },
        { since: 1 },
        { until: 9e12 },
        { name: "work" },
        { after: "4000" },
      ];
      // PostgreSQL sorts what its statistics take for a handful.
      const rare: JobFilter[] = [{ kind: "delivery" }, { schedule: "s" }, { status: "failed" }, { queue: "default" }];
      for (const filter of backend === "sqlite" ? [...usual, ...rare] : usual) {
        const plan = await planOf(at, backend, filter);
        assert.doesNotMatch(plan, /TEMP B-TREE|SCAN job\b|\bSort\b|Seq Scan on daybook_job\b/, JSON.stringify(filter));
      }
      for (const status of [["queued"], ["queued", "waiting", "running"]] as JobFilter["status"][]) {
        const plan = await planOf(at, backend, { status } as JobFilter);
        assert.match(
          plan,
          backend === "sqlite" ? /^SEARCH line USING INTEGER PRIMARY KEY/ : /Scan.* on daybook_line line/,
        );
        assert.doesNotMatch(plan, /TEMP B-TREE|\bSort\b|Seq Scan on daybook_job\b/, JSON.stringify(status));
      }
      assert.match(await planOf(at, backend, { status: "running" }), /jobs_running/);
      assert.match(await planOf(at, backend, { group: made.id }), /jobs_of_group/);
      assert.match(await planOf(at, backend, { group: made.id, status: "queued" }), /jobs_open_in_group/);
    });
  });
}

/** 5,000 jobs, of which every tenth stands in line, so that a planner sees what it would cost to read them all. */
async function fill(at: TestEngine): Promise<void> {
  const many = Array.from({ length: 500 }, () => ({}));
  for (let times = 0; times < 10; times++) await at.jobs.enqueueMany(work, many);
  await at.run("update daybook_job set cancelled_at = 1 where seq <= 4500");
  await at.run("delete from daybook_line where seq <= 4500 and group_seq is null");
  await at.run("analyze");
}

async function planOf(at: TestEngine, backend: Backend, filter: JobFilter): Promise<string> {
  let asked: Sql | undefined;
  const readPage = async (statement: Sql): Promise<Some<never>> => ((asked = statement), { rows: [], more: false });
  await listJobs({ ...at.store, readPage } as never, "default", filter);
  assert.ok(asked);
  const { text } = render(asked, backend);
  if (backend === "sqlite") {
    using db = new DatabaseSync(at.url, { readOnly: true });
    const rows = db.prepare(`explain query plan ${text}`).all() as { detail: string }[];
    return rows.map(({ detail }) => detail).join("\n");
  }
  const client = new Client({ connectionString: at.url });
  await client.connect();
  try {
    await client.query("set search_path to daybook");
    const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (generic_plan) ${text}`);
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  } finally {
    await client.end();
  }
}
