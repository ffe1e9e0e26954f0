// Several real processes write to one file as fast as they can, and somebody keeps an eye on their heartbeats.
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { openTest } from "./open-test.ts";
import { startProcess } from "./session-process.ts";

export type ContentionOptions = {
  readonly processes: number;
  readonly ms: number;
  /** Units that each process has in flight. */
  readonly callers: number;
};

export type ContentionReport = {
  readonly errors: readonly string[];
  readonly unitsPerSecond: number;
  /** What the slowest process got, as a part of its fair share. */
  readonly slowestShare: number;
  /** The longest that anybody waited for one unit. */
  readonly longestWaitMs: number;
  /** The oldest heartbeat that was seen at any time, counted from the start at the earliest. */
  readonly oldestBeatMs: number;
  /** How often the slowest heart beat. */
  readonly fewestBeats: number;
};

export async function contend(t: TestContext, options: ContentionOptions): Promise<ContentionReport> {
  const { processes, ms, callers } = options;
  const { book, url } = await openTest(t, "sqlite", { attach: false });
  await book.write((tx) => tx.sql`create table written (pid integer not null)`);
  const all = await Promise.all(Array.from({ length: processes }, () => startProcess(t, { url })));

  const since = systemClock.now();
  for (const each of all) each.tell({ do: "write", ms, callers });
  let done = false;
  const written = Promise.all(all.map((each) => each.hear("written"))).finally(() => (done = true));
  let oldestBeatMs = 0;
  while (!done) {
    const [row] = await book.read(
      (tx) => tx.sql<{ beat_at: number }>`select min(last_heartbeat_at) as beat_at from daybook_session`,
    );
    oldestBeatMs = Math.max(oldestBeatMs, systemClock.now() - Math.max(since, row?.beat_at ?? 0));
    await systemClock.sleep(50);
  }

  const reports = (await written).map(({ report }) => report);
  const units = reports.map((report) => report.units);
  const total = units.reduce((sum, each) => sum + each, 0);
  const [kept] = await book.read((tx) => tx.sql<{ units: number }>`select count(*) as units from written`);
  const [beats] = await book.read((tx) => tx.sql<{ fewest: number }>`select min(beat) as fewest from daybook_session`);
  const lost = total === kept?.units ? [] : [`${total} units were acknowledged and ${kept?.units} are there`];
  await Promise.all(all.map((each) => each.kill()));
  const report: ContentionReport = {
    errors: [...reports.flatMap((each) => each.errors), ...lost],
    unitsPerSecond: Math.round((total / ms) * 1000),
    slowestShare: (Math.min(...units) / total) * processes,
    longestWaitMs: Math.round(Math.max(...reports.map((each) => each.slowestMs))),
    oldestBeatMs,
    fewestBeats: beats?.fewest ?? 0,
  };
  t.diagnostic(`${processes} × ${callers} callers, ${ms} ms: ${JSON.stringify({ ...report, units })}`);
  return report;
}
