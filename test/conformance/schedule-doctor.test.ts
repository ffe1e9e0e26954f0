import assert from "node:assert/strict";
import { test } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

const work = job("work", { attempts: 2, backoff: ["0s"], run: () => undefined });
const fails = job("fails", {
  attempts: 2,
  backoff: ["1h"],
  run() {
    throw new Error("no");
  },
});
const options = { every: "1h", params: {} } as const;

const findings = async (book: Book): Promise<unknown[]> =>
  (await book.doctor()).map(({ promise, name, found }) => [promise, name, found]);

for (const backend of backends) {
  test(`${backend}: doctor finds a decision without its job, unless something has left since`, async (t) => {
    const { book } = await openTest(t, backend, { use: [work] });
    for (const name of ["gone", "other"]) await book.schedules.create(name, { ...options, job: work });
    const jobId = String((await book.schedules.trigger("gone")).jobId);
    assert.deepEqual(await findings(book), []);

    const name = "a decision that fired names a job of its schedule, unless that left by retention";
    await tamper(book, async (tx) => {
      await tx.sql`update daybook_job set kind_seq = (select seq from daybook_schedule where name = 'other')`;
      await tx.sql`update daybook_line set kind_seq = (select seq from daybook_schedule where name = 'other')`;
    });
    const [, wrong] = await findings(book);
    assert.deepEqual((await findings(book))[0], ["S1", name, [jobId]]);
    assert.deepEqual(wrong, ["S1", "an open job of a schedule has its decision", [jobId]]);
    await tamper(book, async (tx) => {
      await tx.sql`delete from daybook_line`;
      await tx.sql`delete from daybook_job`;
    });
    assert.deepEqual(await findings(book), [["S1", name, [jobId]]]);

    await book.tenant("acme").retain({ jobs: "0s", apply: true });
    assert.equal((await findings(book)).length, 1, "another tenant's");
  });

  test(`${backend}: a finished job that left by retention is not missed`, async (t) => {
    const { book } = await openTest(t, backend, { use: [work], clock: manualClock() });
    await book.schedules.create("hourly", { ...options, job: work });
    const jobId = String((await book.schedules.trigger("hourly")).jobId);
    await (await book.startWorker()).idle();
    await book.retain({ jobs: "0s", apply: true });
    await assert.rejects(book.jobs.get(jobId), { code: "not_found" });
    assert.deepEqual(await findings(book), []);
  });

  test(`${backend}: doctor finds an open job without its decision, and not its retry`, async (t) => {
    const { book } = await openTest(t, backend, { use: [fails], clock: manualClock() });
    await book.schedules.create("hourly", { ...options, job: fails });
    const jobId = String((await book.schedules.trigger("hourly")).jobId);
    await (await book.startWorker()).idle();
    const chain = await book.jobs.chain(jobId);
    assert.equal(chain.length, 2);
    assert.deepEqual(await findings(book), []);

    await tamper(book, (tx) => tx.sql`delete from daybook_decision`);
    assert.deepEqual(await findings(book), [["S1", "an open job of a schedule has its decision", [chain[1]?.id]]]);
  });

  test(`${backend}: doctor finds a queued job of a schedule that has no job before it`, async (t) => {
    const { book } = await openTest(t, backend, { use: [work] });
    await book.schedules.create("hourly", { ...options, job: work });
    const [first, second] = [await book.schedules.trigger("hourly"), await book.schedules.trigger("hourly")];
    const wait = (id: string | null) =>
      tamper(
        book,
        (tx) =>
          tx.sql`update daybook_line set status = 'waiting', waits_for = 'order', waits_key = ${"default\nhourly"}
            where seq = (select seq from daybook_job where id = ${id})`,
      );
    await wait(second.jobId);
    assert.deepEqual(await findings(book), []);
    await wait(first.jobId);
    const name = "a job that waits for the one before it of its schedule has one before it";
    const [[promise, found, ids]] = (await findings(book)) as [[string, string, string[]]];
    assert.deepEqual(
      [promise, found, ids.toSorted()],
      ["J15", name, [first.jobId, second.jobId].map(String).toSorted()],
    );
  });

  test(`${backend}: doctor finds a schedule that has stopped without a reason`, async (t) => {
    const clock = manualClock({ at: Date.UTC(2025, 0, 1) });
    const { book } = await openTest(t, backend, { use: [work], clock });
    for (const name of ["stuck", "paused", "removed"]) await book.schedules.create(name, { ...options, job: work });
    await book.schedules.create("once", { at: "2026-01-01T00:00:00Z", job: work, params: {} });
    await book.schedules.create("bounded", { ...options, job: work, end: "2027-01-01T00:00:00Z" });
    await book.schedules.pause("paused");
    await book.schedules.remove("removed");
    assert.deepEqual(await findings(book), []);

    await tamper(book, (tx) => tx.sql`update daybook_schedule set next_at = null`);
    assert.deepEqual(await findings(book), [["S1", "a schedule that goes on has a next time", ["stuck"]]]);
  });
}
