// Live listeners of a book: they hear what is emitted here and what any process publishes, and leave runs.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import {
  DaybookError,
  event,
  job,
  listener,
  manualClock,
  where,
  type Book,
  type ManualClock,
  type RunRecord,
} from "../../src/index.ts";
import { systemClock } from "../../src/core/clock.ts";
import { runCli } from "../cli/run-cli.ts";
import { backends, openTest } from "../support/open-test.ts";
import { whileTimePasses } from "../support/session-row.ts";

/** Moves the clock until it holds. What is asked takes its time, so that the clock does not run far ahead of the book. */
async function until(clock: ManualClock, holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await clock.advance(50);
}

/** PostgreSQL tells of other processes by itself; at a file one looks now and then. */
async function untilHeard(holds: () => boolean): Promise<void> {
  while (!holds()) await systemClock.sleep(5);
}

async function runsOf(book: Book, clock: ManualClock, count: number): Promise<readonly RunRecord[]> {
  const list = async (): Promise<readonly RunRecord[]> => (await book.runs.list()).items.toReversed();
  await until(clock, async () => (await list()).length >= count);
  return list();
}

for (const backend of backends) {
  describe(`live listeners on ${backend}`, () => {
    test("hear what is published once it is committed, and what is emitted, each in their own tenant", async (t) => {
      const clock = manualClock();
      const heard: unknown[] = [];
      const ear = listener("ear", {
        on: ["light.>", "lamp"],
        live: true,
        run: (payload, { event: said, book: own, tenant }) => {
          heard.push([payload, said.topic, said.id, said.key, own.tenantId, tenant]);
        },
      });
      const all = listener("all", {
        on: "light.*",
        live: true,
        tenants: "all",
        run: (_p, { tenant }) => heard.push(tenant),
      });
      const { book } = await openTest(t, backend, { use: [ear, all], clock });
      const acme = book.tenant("acme");

      const said = await book.events.publish("light.hall", { on: true }, { key: "hall" });
      assert.deepEqual(heard, [[{ on: true }, "light.hall", said.id, "hall", "default", "default"], "default"]);
      await assert.rejects(
        book.write(async (tx) => {
          await tx.events.publish("light.hall", "undone");
          assert.equal(heard.length, 2, "not before the commit");
          throw new Error("no");
        }),
      );
      const { count: again } = await book.events.replay(said.id);
      assert.deepEqual([again, heard.length], [1, 2], "a replay is for durable listeners");
      await acme.events.publish("light.attic", "theirs");
      const count = book.events.emit("lamp", { on: false });
      assert.equal(acme.events.emit("lamp"), 0);
      assert.equal(book.events.emit("nobody.listens"), 0);

      assert.deepEqual(
        [count, heard.slice(2)],
        [1, ["acme", [{ on: false }, "lamp", null, null, "default", "default"]]],
      );
      const [first, second, third] = await runsOf(book, clock, 3);
      assert.deepEqual(
        [first, second, third].map((run) => [
          run?.kind,
          run?.name,
          run?.status,
          run?.event,
          run?.sessionId === book.sessionId,
        ]),
        [
          ["listener", "ear", "success", { id: said.id, topic: "light.hall" }, true],
          ["listener", "all", "success", { id: said.id, topic: "light.hall" }, true],
          ["listener", "ear", "success", { id: null, topic: "lamp" }, true],
        ],
      );
      assert.deepEqual(
        (await runsOf(acme, clock, 1)).map(({ name }) => name),
        ["all"],
      );
      assert.deepEqual(
        book.events.live().map(({ name, hears, heard: events, runs }) => [name, hears, events, runs]),
        [
          ["ear", "light.>, lamp", 2, 2],
          ["all", "light.*", 1, 1],
        ],
      );
      assert.deepEqual(await book.doctor(), []);
    });

    test("hear what other processes publish from the attachment on, once each, and what is delayed when it is due", async (t) => {
      const clock = manualClock();
      const heard: unknown[] = [];
      const ear = listener("ear", { on: "n.*", live: true, run: (n) => heard.push(n) });
      const { book: other, url } = await openTest(t, backend, { clock });
      await other.events.publish("n.a", "before");
      const { book } = await openTest(t, backend, { url, use: [ear], clock });

      await other.events.publish("deaf", "nobody asks for this");
      for (const n of [1, 2]) await other.events.publish("n.a", n);
      await book.events.publish("n.a", 3);
      await untilHeard(() => heard.length >= 3);
      await other.events.publish("n.a", "later", { in: "30s" });
      await other.events.publish("n.b", 4);
      await untilHeard(() => heard.length >= 4);
      assert.deepEqual(new Set(heard), new Set([1, 2, 3, 4]));
      await clock.advance(30_000);

      assert.deepEqual(heard.slice(4), ["later"]);
      assert.equal(book.events.live()[0]?.heard, 5);
      for (const each of [book, other]) await each.close();
    });

    test("what a handler makes carries its run, and one that publishes what it hears ends at the depth limit", async (t) => {
      const clock = manualClock();
      const leaf = job("leaf", { run: () => undefined });
      const made: string[] = [];
      const echo = listener("echo", {
        on: "go",
        live: true,
        async run(_payload, { book, log, runId }) {
          if (made.length === 0) {
            const { id } = await book.jobs.enqueue(leaf, {});
            made.push(id, runId);
            log("enqueued", { id });
          }
          await book.events.publish("go", {});
        },
      });
      const { book } = await openTest(t, backend, { use: [echo, leaf], clock });

      await book.events.publish("go", {});
      const runs = await runsOf(book, clock, 21);

      const failed = runs.filter(({ status }) => status === "error");
      assert.deepEqual([runs.length, failed.length], [21, 1]);
      assert.match(failed[0]?.error?.message ?? "", /"go" would be number 21 in a chain of events/);
      const byId = new Map(runs.map((run) => [run.id, run]));
      assert.equal(runs.filter(({ cause }) => cause !== null && byId.has(cause.runId)).length, 20);
      const [jobId = "", runId = ""] = made;
      const leafRun = await book.jobs.get(jobId);
      assert.deepEqual(leafRun.cause?.runId, runId);
      assert.deepEqual(
        (await book.runs.logs(runId)).map(({ message, fields }) => [message, fields]),
        [["enqueued", { id: jobId }]],
      );
    });

    test("a circle through jobs ends at the depth limit too", async (t) => {
      const clock = manualClock();
      const relay = job("relay", { attempts: 1, run: (_params: unknown, { book }) => book.events.publish("go", {}) });
      const again = listener("again", {
        on: "go",
        live: true,
        run: (_payload, { book }) => book.jobs.enqueue(relay, {}),
      });
      const { book } = await openTest(t, backend, { use: [relay, again], clock });
      await book.startWorker();

      await book.events.publish("go", {});
      await until(clock, async () => (await book.jobs.list({ status: "failed" })).items.length > 0);

      const { items } = await book.events.list();
      assert.deepEqual([items.length, Math.max(...items.map(({ chainDepth }) => chainDepth))], [21, 20]);
    });

    test("an immediate listener begins with the last event of each topic that is in the book", async (t) => {
      const clock = manualClock();
      const heard: unknown[] = [];
      const mirror = listener("mirror", {
        on: "light.*",
        live: true,
        immediate: true,
        where: where.not(where.equals("on", false)),
        run: (payload) => heard.push(payload),
      });
      const { book: first, url } = await openTest(t, backend, { clock });
      for (const n of [1, 2]) await first.events.publish("light.hall", { n });
      await first.events.publish("light.attic", { n: 3 });
      await first.events.publish("light.attic", { on: false });
      await first.events.publish("light.cellar", { n: 4 }, { in: "1h" });
      await first.tenant("acme").events.publish("light.hall", { n: 5 });
      await first.close();

      const { book } = await openTest(t, backend, { url, use: [mirror], clock });
      assert.deepEqual(heard, [{ n: 2 }]);
      await book.events.publish("light.attic", { n: 6 });

      assert.deepEqual(heard, [{ n: 2 }, { n: 6 }]);
    });

    test("the payload is what the event's schema makes of it, and one that does not fit is refused or an error run", async (t) => {
      const clock = manualClock();
      const heard: number[] = [];
      const Level = event("level", { schema: z.object({ celsius: z.string().transform(Number) }) });
      const hot = listener("hot", {
        on: Level,
        live: true,
        where: ({ celsius }) => celsius > 30,
        run: ({ celsius }) => heard.push(celsius),
      });
      const { book: stranger, url } = await openTest(t, backend, { clock });
      const { book } = await whileTimePasses(clock, openTest(t, backend, { url, use: [hot], clock }));

      book.events.emit(Level, { celsius: "31" });
      book.events.emit(Level, { celsius: "3" });
      await whileTimePasses(clock, book.events.publish(Level, { celsius: "32" }));
      assert.throws(() => book.events.emit("level", { celsius: 33 }), {
        code: "invalid",
        message: /does not fit its schema/,
      });
      await whileTimePasses(clock, stranger.events.publish("level", { fahrenheit: 99 }));
      const runs = await runsOf(book, clock, 3);

      assert.deepEqual(heard, [31, 32]);
      assert.deepEqual(
        runs.map(({ status, error }) => [status, error?.type ?? null]),
        [
          ["success", null],
          ["success", null],
          ["error", "DependencyError"],
        ],
      );
      await assert.rejects(
        whileTimePasses(
          clock,
          book.write(() => book.events.emit("level", {})),
        ),
        { code: "invalid", message: /book\.events\.emit was called inside book\.write: it may be undone or run again/ },
      );
      for (const each of [book, stranger]) await whileTimePasses(clock, each.close());
    });

    test("telemetry that cannot be written neither fails nor delays a handler, and is counted for all to see", async (t) => {
      const clock = manualClock();
      let broken = true;
      const heard: number[] = [];
      const ear = listener("ear", { on: "n", live: true, mode: "single", run: (n: number) => void heard.push(n) });
      const held = Promise.withResolvers<void>();
      const slow = listener("slow", { on: "slow", live: true, mode: "single", run: () => held.promise });
      const fault = (_moment: string, text: string): void => {
        if (broken && text.includes("insert into daybook_run "))
          throw new DaybookError("internal", "the disk is tired");
      };
      const { book, url } = await openTest(t, backend, { use: [ear, slow], clock, fault });

      for (let n = 0; n < 5; n++) book.events.emit("n", n);
      assert.deepEqual(heard, [0, 1, 2, 3, 4]);
      const settled = async (): Promise<boolean> => (await book.sessions.list()).items[0]?.dropped?.runs === 5;
      await until(clock, settled);
      broken = false;
      for (let n = 0; n < 3; n++) book.events.emit("slow", n);
      held.resolve();
      const runs = await runsOf(book, clock, 1);
      await book.close();

      assert.deepEqual(
        runs.map(({ name }) => name),
        ["slow"],
      );
      const { stdout } = await runCli(["sessions", "--book", url]);
      assert.match(stdout, /2 events, 5 runs/);
    });

    test("closing cancels what runs and writes it down, and a process that runs nothing hears nothing", async (t) => {
      const clock = manualClock();
      const begun = Promise.withResolvers<AbortSignal>();
      const waits = listener("waits", {
        on: "go",
        live: true,
        async run(_payload, { signal }) {
          begun.resolve(signal);
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
        },
      });
      const { book, url } = await openTest(t, backend, { use: [waits], clock });
      const { book: idle } = await openTest(t, backend, { url, use: [waits], worker: false, clock });

      assert.deepEqual([idle.events.emit("go"), idle.events.live()], [0, []]);
      book.events.emit("go");
      await begun.promise;
      await book.close();

      const { items } = await idle.runs.list();
      assert.deepEqual(
        items.map(({ name, status, error }) => [name, status, error?.type]),
        [["waits", "cancelled", "ShutdownError"]],
      );
    });
  });
}

test("postgres: a publisher that commits late behind a faster one is heard too", async (t) => {
  const clock = manualClock();
  const heard: unknown[] = [];
  const ear = listener("ear", { on: "n", live: true, run: (n) => heard.push(n) });
  const { book: other, url } = await openTest(t, "postgres", { clock });
  const published = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const early = Promise.withResolvers<void>();
  const hold = async (n: string, told: () => void): Promise<void> => {
    await other.write(async (tx) => {
      await tx.events.publish("n", n);
      told();
      await gate.promise;
    });
  };
  // One has its number before anybody listens, the other before one that commits first.
  const before = hold("begun before the attachment", early.resolve);
  await early.promise;
  const { book } = await openTest(t, "postgres", { url, use: [ear], clock });
  const slow = hold("slow", published.resolve);
  await published.promise;

  await other.events.publish("n", "fast");
  while (heard.length < 1) await clock.nextTurn();
  assert.deepEqual(heard, ["fast"]);
  gate.resolve();
  await Promise.all([before, slow]);
  while (heard.length < 3) await clock.nextTurn();

  assert.deepEqual(new Set(heard), new Set(["fast", "slow", "begun before the attachment"]));
  assert.equal(book.events.live()[0]?.heard, 3);
});

test("two listeners of one name are refused, also one live and one durable", async (t) => {
  const run = (): void => undefined;
  const [live, other] = ["a", "b"].map((on) => listener("same", { on, live: true, run }));
  const durable = listener("same", { on: "a", run });

  for (const use of [
    [live, other],
    [live, durable],
  ]) {
    await assert.rejects(openTest(t, "sqlite", { use: use.filter((each) => each !== undefined) }), {
      code: "invalid",
      message: /two listeners in "use" are named "same"/,
    });
  }
});
