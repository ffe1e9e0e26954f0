import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { z } from "zod";
import { app, entity, job, listener, relation, where } from "../../src/index.ts";
import { target } from "../calls/target.ts";
import { backends, cleanup, openTest, type Backend } from "../support/open-test.ts";
import { root } from "./snippet.ts";

const Customer = entity("customer", { schema: z.object({ id: z.string(), country: z.string() }), key: "id" });
const Order = entity("order", { schema: z.object({ id: z.string() }), key: "id" });
const Placed = relation("placed", { from: Customer, to: Order });

type Row = Record<string, unknown>;

const blocks = [...readFileSync(join(root, "docs/origins.md"), "utf8").matchAll(/^```sql\n([^]*?)^```/gm)].map(
  ([, statement = ""]) => statement,
);

for (const backend of backends) {
  test(`${backend}: every statement of docs/origins.md runs, and gives what the page says`, async (t) => {
    const { url, session, ids } = await bookWithHistory(t, backend);

    const rows = await readAll(t, backend, url, blocks);

    const idsOf = (index: number, column: string): unknown[] => (rows[index] ?? []).map((row) => row[column]);
    assert.deepEqual(idsOf(0, "id"), [session]);
    assert.deepEqual(idsOf(1, "id"), [session]);
    assert.deepEqual(idsOf(2, "status"), ["running"]);
    assert.deepEqual(idsOf(3, "job_id"), [ids.urgent]);
    assert.deepEqual(idsOf(4, "job_id"), [ids.urgent, ids.second, ids.delayed, ...ids.later]);
    assert.deepEqual(idsOf(5, "id"), [ids.urgent, ids.second], "one that waits does not stand in the claim's line");
    assert.deepEqual(idsOf(6, "job_id"), [ids.running]);
    assert.deepEqual(idsOf(6, "worker_id"), [session]);
    assert.deepEqual(rows[7], []);
    assert.deepEqual(rows[8], []);
    assert.deepEqual([idsOf(9, "job_id"), idsOf(9, "worker_id")], [[ids.running], [session]]);
    assert.deepEqual(new Set(idsOf(10, "job_id")), new Set([ids.delivery, ...ids.failed]));
    // Which of the two ended last is nobody's promise.
    assert.deepEqual(
      new Map((rows[11] ?? []).map((row) => [row["job_id"], row["error"]])),
      new Map([
        [ids.delivery, "out of ink"],
        [ids.failed.at(-1), "out of paper"],
      ]),
    );
    const chain = (rows[12] ?? []).find((row) => row["root_id"] === ids.failed[0]);
    assert.equal(Number(chain?.["jobs"]), 2);
    assert.deepEqual(idsOf(13, "name"), ["reminder"]);
    assert.deepEqual(idsOf(13, "jobs").map(Number), [1]);
    assert.deepEqual([idsOf(14, "group_id"), idsOf(14, "status")], [[ids.group], ["OPEN"]]);
    assert.deepEqual(idsOf(14, "jobs").map(Number), [2]);
    assert.deepEqual([idsOf(15, "reservation_id"), idsOf(15, "reserved_by")], [[ids.reservation], [session]]);
    assert.deepEqual(
      (rows[16] ?? []).map((row) => [row["name"], row["cron_expression"], row["timezone"], Number(row["enabled"])]),
      [
        ["hourly", "1h", "UTC", 1],
        ["reminders", "0 7 * * *", "Europe/Madrid", 1],
      ].toSorted((a, b) => idsOf(16, "name").indexOf(a[0]) - idsOf(16, "name").indexOf(b[0])),
    );
    const [reminders, hourly] = ["reminders", "hourly"].map((name) => rows[16]?.find((row) => row["name"] === name));
    assert.deepEqual([reminders?.["template_id"] !== null, hourly?.["template_id"]], [true, null]);
    assert.deepEqual(
      [reminders, hourly].map((row) => JSON.parse(String(row?.["param_overrides"])) as unknown),
      [{ copies: 2 }, { n: 1 }],
    );
    assert.deepEqual(idsOf(17, "name"), ["hourly"]);
    assert.deepEqual(
      [idsOf(18, "type"), idsOf(18, "namespace")],
      [
        ["print.wanted", "event.dead_letter"],
        ["default", "default"],
      ],
    );
    assert.deepEqual(
      (rows[19] ?? []).map((row) => [
        row["event_id"],
        row["handler_id"],
        Number(row["attempts"]),
        row["last_error"],
        row["ack_at"],
      ]),
      [[ids.event, "printer", 1, "out of ink", null]],
    );
    assert.deepEqual([idsOf(20, "event_id"), idsOf(20, "event_type")], [[ids.event], ["print.wanted"]]);
    const fields = (index: number): unknown[] =>
      idsOf(index, "fields_json").map((text) => JSON.parse(String(text)) as unknown);
    const keyed = (index: number): unknown[][] =>
      (rows[index] ?? [])
        .map((row) => [row["entity_key"], Number(row["commit_id"])])
        .toSorted(([one], [other]) => String(one).localeCompare(String(other)));
    assert.deepEqual(fields(21), [{ id: "ada", country: "NO" }]);
    assert.deepEqual(keyed(22), [
      ["ada", 3],
      ["bob", 2],
    ]);
    assert.deepEqual(keyed(23), [["ada", 1]]);
    assert.deepEqual(fields(24), [
      { id: "ada", country: "SE" },
      { id: "bob", country: "PE" },
      { id: "ada", country: "NO" },
    ]);
    assert.deepEqual(
      (rows[25] ?? []).map((row) => [row["left_key"], row["right_key"], row["instance_key"], Number(row["commit_id"])]),
      [["ada", "o-1", "", 3]],
    );
    assert.deepEqual(idsOf(26, "right_key"), ["o-1"]);
    assert.deepEqual([idsOf(27, "orphans"), idsOf(28, "orphans")].flat().map(Number), [0, 0]);
    assert.deepEqual(idsOf(29, "id").map(Number), [1, 2, 3]);
    assert.deepEqual(rows[30], []);
    assert.deepEqual(
      (rows[31] ?? []).map((row) => [row["entity_type"], Number(row["total_versions"])]),
      [
        ["customer", 3],
        ["order", 1],
      ],
    );
    assert.deepEqual(idsOf(32, "type_name"), ["customer", "order", "placed"]);
    assert.deepEqual(idsOf(33, "reason"), ["initial"]);
    assert.deepEqual([idsOf(34, "service_call_id"), idsOf(34, "status")], [[ids.call], ["Scheduled"]]);
    assert.deepEqual(idsOf(35, "service_call_id"), [ids.call]);
    assert.deepEqual(idsOf(36, "service_call_id"), [ids.call]);
    assert.deepEqual([idsOf(37, "service_call_id"), idsOf(37, "state")], [[ids.call], ["Scheduled"]]);
    assert.deepEqual([idsOf(38, "request_method"), idsOf(38, "response_status")], [["GET"], ["200"]]);
    assert.deepEqual(rows[39], []);
    // Those about apps: the test below and test/conformance/seed-000.test.ts look at what they give in a book that has some.
    // Here there is one run of a listener, which belongs to no app.
    assert.deepEqual(
      rows.slice(40).map((found) => found.length),
      [0, 0, 0, 0, 1, 0, 0, 1, 0],
    );
    assert.equal(rows.length, 49, "a statement was added that no line here looks at");
  });

  test(`${backend}: the registrations of apps are shown with the columns and words of the design`, async (t) => {
    const params: Record<string, unknown> = { when: new Date(0), where: new URL("http://a.example/"), big: 3n };
    params["self"] = params;
    const lights = app("lights", {
      setup(home) {
        home.on(
          ["motion.hall", "door"],
          { name: "on", debounce: 1500, where: where.exists("x") },
          function turnOn() {},
        );
        home.on("z", { name: "once", once: true, throttle: "2s", priority: 7 }, () => undefined);
        home.every("5m", { name: "a", params }, function tick() {});
        home.daily("07:05", { name: "b", params: [new Date(0), "x"] }, () => undefined);
        home.cron("0 30 6 * * *", { name: "c" }, () => undefined);
        home.once("2030-01-01T00:00:00Z", { name: "d" }, () => undefined);
        home.job({ name: "e" }, () => undefined);
      },
    });
    const { book, url } = await openTest(t, backend, { use: [lights], views: true });
    const { registered } = await book.apps.get("lights");

    const [listeners = [], jobs = [], counts = []] = await readAll(
      ...([t, backend, url] as const),
      blocks.filter((each) => /'lights'|AS listeners/.test(each) && !each.includes("handler_invocations")),
    );

    const pick = (row: Row, ...columns: string[]): unknown[] => columns.map((column) => row[column]);
    assert.deepEqual(
      listeners.map((row) => [
        ...pick(row, "handler_method", "topic", "predicate_description"),
        ...[row["debounce"], row["throttle"]].map((value) => (value === null ? null : Number(value))),
        ...pick(row, "once", "priority").map(Number),
      ]),
      [
        ["turnOn", "motion.hall, door", "x is there", 1.5, null, 0, 0],
        ["<anonymous>", "z", null, null, 2, 1, 7],
      ],
    );
    assert.deepEqual(
      jobs.map((row) => [
        ...pick(row, "job_name", "handler_method", "trigger_type", "trigger_value"),
        Number(row["repeat"]),
      ]),
      [
        ["a", "tick", "interval", "300.0", 1],
        ["b", "<anonymous>", "cron", "5 7 * * *", 1],
        ["c", "<anonymous>", "cron", "0 30 6 * * *", 1],
        ["d", "<anonymous>", null, "2030-01-01T00:00:00.000Z", 0],
      ],
    );
    assert.deepEqual(pick(jobs[0] ?? {}, "args_json", "kwargs_json"), [
      "[]",
      '{"big":"3","self":"<NON_SERIALIZABLE>","when":"1970-01-01T00:00:00.000Z","where":"http://a.example/"}',
    ]);
    assert.deepEqual(pick(jobs[1] ?? {}, "args_json", "kwargs_json"), ['["1970-01-01T00:00:00.000Z","x"]', "{}"]);
    assert.deepEqual(
      counts.map((row) => [row["app_key"], Number(row["listeners"])]),
      [["lights", 2]],
    );
    assert.equal(listeners[0]?.["id"], registered.find(({ name }) => name === "on")?.id);
    assert.match(String(listeners[0]?.["source_location"]), /test\/docs\/origins\.test\.ts:\d+$/);
    assert.match(String(listeners[1]?.["registration_source"]), /^home\.on\("z", \{ name: "once"/);
    await assert.rejects(async () => book.write((tx) => tx.sql`update listeners set topic = 'x'`));
    await assert.rejects(async () => book.write((tx) => tx.sql`delete from scheduled_jobs`));
  });
}

/** Jobs in every state that the page speaks of, and the session that runs one of them. */
async function bookWithHistory(t: TestContext, backend: Backend) {
  const held = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const print = job("print", {
    attempts: 2,
    backoff: ["0s"],
    run: () => {
      throw new Error("out of paper");
    },
  });
  const hold = job("hold", {
    run: () => {
      started.resolve();
      return held.promise;
    },
  });
  const printer = listener("printer", {
    on: "print.*",
    attempts: 1,
    run: () => {
      throw new Error("out of ink");
    },
  });
  const { book, url } = await openTest(t, backend, {
    use: [print, hold, printer, Placed],
    calls: { allow: ["127.0.0.1"] },
    views: true,
  });
  await book.records.put(Customer, { id: "ada", country: "SE" });
  await book.records.put(Customer, { id: "bob", country: "PE" });
  await book.write(async ({ records }) => {
    await records.patch(Customer, "ada", { country: "NO" });
    await records.put(Order, { id: "o-1" });
    await records.link(Placed, { from: "ada", to: "o-1" });
  });
  cleanup(t, () => held.resolve());
  const said = await book.events.publish("print.wanted", null);
  const first = await book.jobs.enqueue(print, {});
  await book.calls.submit({ url: (await target(t)).url });
  const printing = await book.startWorker();
  await printing.idle();
  await printing.stop();
  const running = await book.jobs.enqueue(hold, {}, { queue: "other" });
  await book.startWorker({ concurrency: 1 });
  await started.promise;
  const second = await book.jobs.enqueue(hold, {});
  const delayed = await book.jobs.enqueue(hold, {}, { in: "1h" });
  const urgent = await book.jobs.enqueue(hold, {}, { priority: 10 });
  await book.templates.create("reminder", { job: hold });
  const reminder = await book.jobs.enqueueFrom("reminder", {}, { queue: "side" });
  await book.schedules.create("hourly", { every: "1h", job: hold, params: { n: 1 }, queue: "side" });
  await book.schedules.create("reminders", {
    cron: "0 7 * * *",
    zone: "Europe/Madrid",
    template: "reminder",
    params: { copies: 2 },
  });
  const { jobId: scheduled } = await book.schedules.trigger("hourly");
  const group = await book.groups.create({ mode: "parallel" }, (jobs) => {
    jobs.add(hold, {}, { queue: "side" });
    jobs.add(hold, {}, { queue: "side" });
  });
  const reservation = await book.reservations.reserve("side");
  const call = await book.calls.submit({
    url: "https://api.example.com/",
    tags: ["urgent"],
    correlationId: "trace-1",
    in: "1h",
  });
  const { jobId } = await book.calls.get(call.id);
  const failed = (await book.jobs.chain(first.id)).map(({ id }) => id);
  const later = [reminder.id, scheduled, ...group.jobs.map(({ id }) => id), jobId];
  const ids = {
    running: running.id,
    second: second.id,
    delayed: delayed.id,
    urgent: urgent.id,
    failed,
    later,
    group: group.id,
    reservation: reservation.id,
    call: call.id,
    event: said.id,
    delivery: (await book.deadLetters.list()).items[0]?.jobId,
  };
  return { url, session: book.sessionId, ids };
}

/** As a reader runs them: with the database's own client, read-only. */
async function readAll(t: TestContext, backend: Backend, url: string, statements: readonly string[]): Promise<Row[][]> {
  if (backend === "sqlite") {
    const db = new DatabaseSync(url, { readOnly: true });
    cleanup(t, () => db.close());
    return statements.map((statement) => db.prepare(statement).all() as Row[]);
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query("set search_path to daybook; set default_transaction_read_only to on");
  const found: Row[][] = [];
  for (const statement of statements) found.push((await client.query<Row>(statement)).rows);
  return found;
}
