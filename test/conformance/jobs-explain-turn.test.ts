import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { fireDue } from "../../src/schedules/fire.ts";
import { heldJob } from "../jobs/handlers.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

const work = job("work", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test("explain names the group, the reservation, direct work and the order of a schedule", async (t) => {
      const held = heldJob("held");
      const clock = manualClock({ at: Date.UTC(2026, 0, 15, 12) - 1 });
      const { book, url } = await openTest(t, backend, { use: [work, held.job], clock });
      const { jobs } = await book.groups.create({ mode: "sequential" }, (group) => {
        group.add(work, {}, { queue: "grouped" });
        group.add(work, {}, { queue: "grouped" });
      });
      const because = async (id: string): Promise<string> => {
        const { reason, because: lines } = await book.jobs.explain(id);
        return `${reason}: ${lines.join(" ")}`;
      };
      assert.match(
        await because(jobs[1]?.id ?? ""),
        /^group: It is number 2 of group .* number 1 \(job .*\) is queued/,
      );

      await book.reservations.reserve("other", { note: "by hand" });
      const { id } = await book.jobs.enqueue(work, {}, { queue: "other" });
      await book.schedules.create("minutes", { cron: "* * * * *", job: work, params: {}, overlap: "queue" });
      const { store } = await openTestStore(t, backend, { url, clock });
      for (const ms of [1, 60_000]) {
        clock.step(ms);
        await store.write((tx) => fireDue(tx, { kinds: {} }));
      }
      const [second] = (await book.jobs.list({ status: "waiting", name: "work" })).items;
      assert.match(await because(second?.id ?? ""), /^order: It comes after .* of its schedule: job .* is queued/);

      await book.startWorker({ queues: ["held", "other"], concurrency: 1 });
      assert.match(await because(id), /^reserved: The queue other is reserved by session .* \(by hand\) until/);
      await book.jobs.enqueue(held.job, {}, { queue: "held" });
      const { succeed } = await held.whenBegun(1);
      const asked = book.jobs.runNow(held.job, {}, { queue: "held" });
      const direct = async (): Promise<string | undefined> =>
        (await book.jobs.list({ queue: "held", status: "waiting" })).items[0]?.id;
      while ((await direct()) === undefined) await new Promise((resolve) => setImmediate(resolve));
      assert.match(
        await because((await direct()) ?? ""),
        /^reservation: It is direct work .* 1 of its queue still run/,
      );
      succeed();
      (await held.whenBegun(2)).succeed();
      await asked;
    });

    test("a job of a schedule that has a limit key as well names the job before it", async (t) => {
      const clock = manualClock({ at: "2026-01-15T12:00:00Z" });
      const limited = job("limited", { limit: { key: () => "one", concurrency: 1 }, run: () => undefined });
      const { book, url } = await openTest(t, backend, { use: [limited], clock });
      await book.schedules.create("minutes", { cron: "* * * * *", job: limited, params: {}, overlap: "queue" });
      const { store } = await openTestStore(t, backend, { url, clock });
      for (const ms of [60_000, 60_000]) {
        clock.step(ms);
        await store.write((tx) => fireDue(tx, { kinds: {} }));
      }
      const { items } = await book.jobs.list({ name: "limited" });
      const [waits, before] = items;

      const { because } = await book.jobs.explain(waits?.id ?? "");

      assert.match(because.join(" "), new RegExp(`of its schedule: job ${before?.id} is queued`));
    });
  });
}
