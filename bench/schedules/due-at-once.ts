// Ten thousand schedules that are due in the same second: their jobs and decisions on disk; and what they cost while none is.
import { manualClock, open } from "../../src/index.ts";
import { fireDue } from "../../src/schedules/fire.ts";
import { startTicker } from "../../src/schedules/ticker.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import type { Report } from "../harness/report.ts";
import { scratch } from "../harness/scratch.ts";
import { tamper } from "../../test/support/tamper.ts";

const noon = Date.UTC(2026, 0, 15, 12);
const fireMsMax = 2000;
const rounds = 3;
const idleMinutes = 30;

export async function dueAtOnce(report: Report, count: number): Promise<void> {
  const path = scratch("schedules");
  const clock = manualClock({ at: noon - 1000 });
  await using book = await open(path, { clock, worker: false });
  await book.write(async (tx) => {
    for (let index = 0; index < count; index++) {
      await tx.schedules.create(`s${index}`, { cron: "0 * * * *", job: "nothing", params: { index } });
    }
  });
  let looks = 0;
  const fault = (moment: "before" | "after", text: string): void => {
    if (moment === "before" && text.includes("from daybook_schedule where next_at <=")) looks++;
  };
  const store = await openStore(path, migrations, { clock, fault });
  try {
    report.times(`firing ${count} that are due in one second`, await fire(), { goalMsMax: fireMsMax });
    await book.close(); // its heartbeat would stand in the way of a clock that stands still
    await idle();
  } finally {
    await store.close();
  }

  async function fire(): Promise<number[]> {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      clock.step(round === 0 ? 1000 : 3_600_000);
      const begun = performance.now();
      while (await store.write((tx) => fireDue(tx, { kinds: {} }))) continue;
      times.push(performance.now() - begun);
      await tamper(book, cancelAll);
    }
    const [made] = await book.read((tx) => tx.sql<{ jobs: number }>`select count(*) as jobs from daybook_job`);
    if (made?.jobs !== count * rounds) throw new Error(`${made?.jobs} jobs were made, not ${count * rounds}`);
    return times;
  }

  /** What a process does while nothing is due: a look each minute, and how long one takes. */
  async function idle(): Promise<void> {
    const ticker = startTicker({ store, kinds: {} });
    await ticker.tick();
    const before = looks;
    await clock.advance(idleMinutes * 60_000);
    await ticker.tick();
    const perMinute = (looks - before) / idleMinutes;
    const times: number[] = [];
    for (let round = 0; round < 200; round++) {
      const begun = performance.now();
      await ticker.tick();
      times.push(performance.now() - begun);
    }
    await ticker.stop();
    report.note(`idle: ${perMinute.toFixed(1)} looks a minute, whatever their number`);
    report.times(`one look at ${count} while none is due`, times);
  }
}

type Tampering = Parameters<Parameters<typeof tamper>[1]>[0];

/** All that were made leave the line, as if somebody had cancelled each of them. */
async function cancelAll(tx: Tampering): Promise<void> {
  await tx.sql`delete from daybook_line`;
  await tx.sql`update daybook_job set cancelled_at = ${tx.now} where cancelled_at is null`;
}
