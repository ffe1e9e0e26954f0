import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { event, job, listener, manualClock, schedule } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";
import { tamper } from "../support/tamper.ts";

const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);
const Tick = event("clock.tick", { schema: z.object({ n: z.number() }) });

for (const backend of backends) {
  describe(backend, () => {
    test("a slot publishes its event with its decision, and the headers name the slot", async (t) => {
      const heard: unknown[] = [];
      const clock = manualClock({ at: noon - 1000 });
      const ear = listener("ear", {
        on: Tick,
        run: ({ n }, { event: { headers, causeRunId }, book: { tenantId } }) =>
          void heard.push([tenantId, n, headers["schedule"], headers["slot"], headers["reason"], causeRunId]),
      });
      const ticks = schedule("ticks", { cron: "* * * * *", event: Tick, payload: { n: 1 }, priority: 7 });
      const { book } = await openTest(t, backend, { clock, use: [ticks, ear] });
      const acme = book.tenant("acme");
      await acme.schedules.create("ticks", { cron: "* * * * *", event: "clock.tick", payload: { n: 2 } });
      await book.startWorker();
      await clock.advance(2000);
      // Others may see the ticker's commit before this process learns of it, and its worker is idle until then.
      await until("it is heard", async () => (await book.events.list()).items[0]?.status === "acked" || undefined);

      const slot = new Date(noon).toISOString();
      assert.deepEqual(heard, [["default", 1, "ticks", slot, "fired", null]]);
      const [decision] = (await book.schedules.decisions("ticks")).items;
      const said = await book.events.get(String(decision?.eventId));
      assert.deepEqual([decision?.jobId, said.priority, said.status, said.chainDepth], [null, 7, "acked", 0]);
      const [theirs] = (await acme.schedules.decisions("ticks")).items;
      assert.deepEqual((await acme.events.get(String(theirs?.eventId))).payload, { n: 2 });
      const { because } = await book.schedules.why("ticks", noon);
      assert.match(because.join(" "), new RegExp(`It ran.*Its event is ${said.id}`));
      const { target, params, fires } = await book.schedules.get("ticks");
      assert.deepEqual([target, params, fires], [{ kind: "event", name: "clock.tick" }, { n: 1 }, 1]);
      assert.deepEqual(await book.doctor(), []);
    });

    test("missed slots publish their events in order, so do trigger and backfill, and nothing twice", async (t) => {
      const clock = manualClock({ at: noon });
      const { book } = await openTest(t, backend, { clock });
      await book.schedules.create("ticks", { cron: "* * * * *", event: Tick, payload: { n: 1 }, missed: "all" });
      clock.step(3 * minute + 5000);
      await book.startWorker();
      while ((await book.schedules.decisions("ticks")).items.length < 3) await clock.nextTurn();

      const slots = (await book.events.list()).items
        .toReversed()
        .map(({ headers }) => Date.parse(headers["slot"] ?? ""));
      assert.deepEqual(
        slots,
        [1, 2, 3].map((n) => noon + n * minute),
      );
      const { jobId, eventId } = await book.schedules.trigger("ticks");
      assert.deepEqual([jobId, (await book.events.get(String(eventId))).headers["reason"]], [null, "manual"]);
      const { slots: filled, already } = await book.schedules.backfill("ticks", noon, noon + 2 * minute);
      assert.deepEqual([filled, already], [[noon], 2]);
      assert.equal((await book.events.list()).items.length, 5);
      assert.deepEqual(await book.doctor(), []);
      await tamper(book, (tx) => tx.sql`delete from daybook_event where id = ${eventId ?? ""}`);
      assert.deepEqual(
        (await book.doctor()).map(({ found }) => found),
        [[eventId]],
      );
    });

    test("an edit may turn a job into an event and back, and a payload is checked when it is written", async (t) => {
      const work = job("work", { run: () => undefined });
      const { book } = await openTest(t, backend, { use: [Tick, work] });
      await book.schedules.create("one", {
        every: "1h",
        job: work,
        params: {},
        overlap: "queue",
        pauseAfterFailures: 2,
      });

      const said = await book.schedules.edit("one", { event: "clock.tick", payload: { n: 1 } });
      assert.deepEqual([said.target.kind, said.overlap, said.pauseAfterFailures], ["event", "allow", null]);
      assert.deepEqual((await book.schedules.edit("one", { payload: { n: 2 } })).params, { n: 2 });
      const again = await book.schedules.edit("one", { job: "work", params: { a: 1 } });
      assert.deepEqual([again.target.kind, again.overlap, again.params], ["job", "skip", { a: 1 }]);

      const bad: [object, RegExp][] = [
        [{ event: Tick, payload: { n: "x" } }, /payload of "clock.tick" does not fit/],
        [{ event: "clock..tick" }, /empty segment/],
        [{ event: 7 }, /give an event, or a topic/],
        [{ event: Tick, job: work }, /fires one thing/],
        [{}, /fires one thing/],
        [{ job: work, payload: {} }, /"payload" is for "event"/],
        [{ event: "clock.tick", params: { n: 1 } }, /give "payload"/],
        [{ event: "a.b", overlap: "skip" }, /"overlap" is about jobs: leave it out/],
        [{ event: "a.b", queue: "q" }, /"queue" is about jobs/],
      ];
      for (const [options, message] of bad) {
        const made = book.schedules.create("bad", { every: "1h", ...options } as never);
        await assert.rejects(made, { code: "invalid", message });
      }
    });
  });
}
