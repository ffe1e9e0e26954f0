// Processes that fire schedules and are killed at a named point between a slot and its job.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { open, type Book, type ReadTx } from "../../src/index.ts";
import { startJobProcess, type JobProcess } from "./job-process.ts";
import { cleanup, testFolder, bookUrl, type Backend } from "./open-test.ts";
import { until } from "./session-row.ts";

/** The kill points of the room, in the order in which a slot meets them. */
export const scheduleKillPoints = ["schedules.decided", "schedules.fired"] as const;

export type Bench = {
  readonly book: Book;
  start(crashAt?: string): JobProcess;
  /** Waits until `count` slots are decided. */
  untilDecided(count: number): Promise<void>;
};

/** A book with schedules of every second, and nobody yet who works on it. */
export async function scheduleBench(t: TestContext, backend: Backend, names: readonly string[]): Promise<Bench> {
  const [url, folder] = [await bookUrl(t, backend), testFolder(t)];
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  for (const name of names) {
    await book.schedules.create(name, { every: "1s", job: "noop", params: {}, overlap: "allow", missed: "all" });
  }
  return {
    book,
    start: (crashAt) =>
      startJobProcess(
        t,
        { url, folder, work: {} },
        crashAt === undefined ? {} : { env: { DAYBOOK_CRASH_AT: crashAt } },
      ),
    async untilDecided(count) {
      const decided = async (): Promise<true | undefined> => (await book.read(slotsOf)).length >= count || undefined;
      await until(`${count} slots are decided`, decided);
    },
  };
}

type Decided = { name: string; slot_at: number; kind: string; job_id: string | null };

const slotsOf = (tx: ReadTx): Promise<Decided[]> => tx.sql<Decided>`select schedule.name, slot_at, decision.kind, job_id
  from daybook_decision decision join daybook_schedule schedule on schedule.seq = decision.schedule_seq order by schedule.name, slot_at`;

/** No decision without its job, no job without its decision, no slot twice, and none left out. */
export async function assertEachOnce(book: Book): Promise<void> {
  // Of one moment: PostgreSQL may finish the commit of a process after its death.
  const { slots, made } = await book.read(async (tx) => ({
    slots: await slotsOf(tx),
    made: await tx.sql<{ id: string }>`select id from daybook_job_now where kind = 'schedule' and retry_of is null`,
  }));
  assert.deepEqual(slots.map((slot) => String(slot.job_id)).toSorted(), made.map((job) => job.id).toSorted());
  for (const [index, { name, slot_at, kind }] of slots.entries()) {
    const before = slots[index - 1];
    // A machine that starts processes slowly makes of some slots what was missed; they are made up for all the same.
    assert.ok(kind === "fired" || kind === "caught_up", kind);
    if (before?.name === name) assert.equal(slot_at - before.slot_at, 1000, `${name}: a slot is missing or doubled`);
  }
  assert.deepEqual(await book.doctor(), []);
}
