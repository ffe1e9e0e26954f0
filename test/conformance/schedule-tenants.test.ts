import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, open, schedule, type Book } from "../../src/index.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";
import { until, whileTimePasses } from "../support/session-row.ts";

const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);

for (const backend of backends) {
  describe(backend, () => {
    test("a schedule for all tenants is one of each tenant, with its own jobs, book and decisions", async (t) => {
      const ran: string[] = [];
      const work = job("work", { run: (_: unknown, { book }) => void ran.push(book.tenantId) });
      const clock = manualClock({ at: noon - 1000 });
      const { book: first, url } = await openTest(t, backend, { use: [work], clock });
      for (const tenant of ["acme", "zeta"]) await first.tenant(tenant).jobs.enqueue(work, {});
      const all = schedule("minutes", { cron: "* * * * *", job: work, params: {}, tenants: "all" });
      // What a tenant has made itself under that name stays its own.
      await first.tenant("zeta").schedules.create("minutes", { daily: "07:00", job: work, params: {} });

      const { book } = await openTest(t, backend, { url, use: [all], clock });
      const { store } = await openTestStore(t, backend, { url, clock });
      clock.step(1000);
      await fireAll(store);

      const kinds = async (seen: Book): Promise<string[]> =>
        (await seen.schedules.decisions("minutes")).items.map(({ kind }) => kind);
      assert.deepEqual([await kinds(book), await kinds(book.tenant("acme"))], [["fired"], ["fired"]]);
      assert.deepEqual((await book.tenant("zeta").schedules.get("minutes")).expression, "07:00");
      await (await book.startWorker()).idle();
      assert.deepEqual(ran.toSorted(), ["acme", "acme", "default", "zeta"]);
      await book.tenant("acme").schedules.pause("minutes");
      assert.equal((await book.schedules.get("minutes")).paused, null);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a tenant that comes later gets its own copy of a schedule for all tenants", async (t) => {
      const work = job("work", { run: () => undefined });
      const clock = manualClock({ at: noon });
      const all = schedule("nightly", { cron: "0 0 * * *", job: work, params: {}, tenants: "all" });
      const { book } = await openTest(t, backend, { use: [all], clock });
      await book.startWorker();
      const late = book.tenant("late");
      await late.jobs.enqueue(work, {});

      const made = async (): Promise<true | undefined> => (await late.schedules.list()).items.length === 1 || undefined;
      await whileTimePasses(clock, until("it has its own", made), 1000);
      const { source, nextAt } = await late.schedules.get("nightly");
      assert.deepEqual([source, nextAt], ["code", noon + 12 * 60 * minute]);
    });

    test("a schedule for all tenants is renamed for all of them at once, by the whole book alone", async (t) => {
      const work = job("work", { run: () => undefined });
      const clock = manualClock({ at: noon - 1000 });
      const { book: first, url } = await openTest(t, backend, { use: [work], clock });
      const timing = { cron: "* * * * *", job: work, params: {}, overlap: "allow" } as const;
      for (const tenant of ["acme", "beta", "zeta"]) await first.tenant(tenant).jobs.enqueue(work, {});
      await first.tenant("zeta").schedules.create("minutes", timing);
      const old = schedule("minutes", { ...timing, tenants: "all" });
      const { book } = await openTest(t, backend, { url, use: [old], clock });
      const { store } = await openTestStore(t, backend, { url, clock });
      clock.step(1000);
      await fireAll(store);
      const [acme, beta] = [book.tenant("acme"), book.tenant("beta")];
      const { id } = await acme.schedules.get("minutes");

      const refused = { code: "forbidden", message: /is for all tenants.*the book that open\(\) returned/ };
      await assert.rejects(acme.schedules.rename("minutes", "each-minute"), refused);
      await assert.rejects(
        acme.write((tx) => tx.schedules.rename("minutes", "each-minute")),
        refused,
      );
      // All or none: one tenant has made its own under the new name.
      await beta.schedules.create("each-minute", timing);
      await assert.rejects(book.schedules.rename("minutes", "each-minute"), { message: /of tenant "beta" exists/ });
      assert.equal((await acme.schedules.get("minutes")).id, id);
      await beta.schedules.remove("each-minute");
      await book.schedules.rename("minutes", "each-minute");
      await book.close();
      const coded = schedule("each-minute", { ...timing, tenants: "all" });
      const { book: next } = await openTest(t, backend, { url, use: [coded], clock });
      clock.step(minute);
      await fireAll(store);

      const seen = async (tenant: string): Promise<string[]> =>
        (await next.tenant(tenant).schedules.list()).items.map(({ name, fires }) => `${name} ${fires}`);
      for (const tenant of ["default", "acme", "beta"]) assert.deepEqual(await seen(tenant), ["each-minute 2"], tenant);
      assert.equal((await next.tenant("acme").schedules.get("each-minute")).id, id);
      // What a tenant has made itself under the old name is its own.
      assert.deepEqual(await seen("zeta"), ["each-minute 1", "minutes 2"]);
      assert.deepEqual(await next.doctor(), []);
    });

    test("for all tenants is said in code, of a job", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });
      const create = book.schedules.create("one", { every: "1h", job: "work", tenants: "all" } as never);
      await assert.rejects(create, { code: "invalid", message: /for definitions in code/ });
      const wrong = { every: "1h", template: "report", tenants: "all" } as const;
      assert.throws(() => schedule("one", wrong), { code: "invalid", message: /a template belongs to one/ });
      assert.throws(() => schedule("one", { ...wrong, tenants: "some" } as never), { code: "invalid" });
    });
  });
}

test("a program that lists a schedule also runs the job that the schedule fires", async () => {
  const work = job("work", { run: () => "done" });
  await using book = await open(":memory:", { use: [schedule("hourly", { every: "1h", job: work, params: {} })] });
  const jobId = String((await book.schedules.trigger("hourly")).jobId);
  await (await book.startWorker()).idle();
  assert.equal((await book.jobs.get(jobId)).status, "completed");
});
