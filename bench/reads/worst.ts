// The worst reads that one tenant may ask for, all at once and again and again, and what another tenant feels of them.
import { readFileSync, statSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { entity, isDaybookError, open, type Book } from "../../src/index.ts";
import { durablePostgres } from "../../test/support/postgres.ts";
import { median, quantile } from "../harness/median.ts";
import type { Report } from "../harness/report.ts";
import { scratch } from "../harness/scratch.ts";

const schema = z.object({ id: z.string(), n: z.number(), text: z.string() });
const Note = entity("note", { schema, key: "id", search: ["text"] });
const notes = 200_000;
const large = 100;
const aloneMs = 4000;
const besideMs = 11_000;

export async function measureWorstSqlite(report: Report): Promise<void> {
  const path = scratch("worst.db");
  await measure(report, "SQLite", path, () => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
}

export async function measureWorstPostgres(report: Report): Promise<void> {
  const server = await durablePostgres();
  try {
    await measure(report, "PostgreSQL", server.url, () => 0);
  } finally {
    await server.stop();
  }
}

async function measure(report: Report, name: string, url: string, walBytes: () => number): Promise<void> {
  const book = await open(url, { use: [Note], worker: false });
  const [noisy, quiet] = [book.tenant("noisy"), book.tenant("quiet")];
  await fill(noisy, notes, () => "a few words");
  await fill(noisy, large, () => "x".repeat(1_000_000));
  await fill(quiet, 1000, () => "a few words");
  const alone = await feel(quiet, aloneMs);
  const before = memoryMb();
  const delay = monitorEventLoopDelay({ resolution: 10 });
  let [walMax, here, all] = [0, before.here, before.all];
  let going = true;
  const sampling = (async () => {
    while (going) {
      const now = memoryMb();
      [walMax, here, all] = [Math.max(walMax, walBytes()), Math.max(here, now.here), Math.max(all, now.all)];
      await sleep(50);
    }
  })();
  delay.enable();
  const attacks = worst(noisy).map(([what, read]) => repeat(what, read, () => going));
  const beside = await feel(quiet, besideMs);
  delay.disable();
  going = false;
  const outcomes = await Promise.all(attacks);
  await sampling;
  report.note(`${name}: what became of each, with how long it took at most`);
  for (const each of outcomes) report.note(`  ${each}`);
  const ratio = (pick: (ms: readonly number[]) => number): string =>
    `${pick(alone).toFixed(1)} ms alone, ${pick(beside).toFixed(1)} ms beside (${(pick(beside) / pick(alone)).toFixed(1)}×)`;
  report.note(`${name}: another tenant's list, p50 ${ratio(median)}; p99 ${ratio((ms) => quantile(ms, 0.99))}`);
  report.note(
    `${name}: the loop was held for ${(delay.max / 1e6).toFixed(0)} ms at most, the WAL was ${mb(walMax)} at most`,
  );
  report.note(
    `${name}: the process grew by ${(here - before.here).toFixed(0)} MB, with its readers by ${(all - before.all).toFixed(0)} MB`,
  );
  const closing = performance.now();
  await book.close();
  report.note(`${name}: closed within ${(performance.now() - closing).toFixed(0)} ms`);
}

async function fill(book: Book, count: number, text: () => string): Promise<void> {
  const perCommit = text().length > 1000 ? 20 : 10_000;
  for (let from = 0; from < count; from += perCommit) {
    await book.write(async (tx) => {
      for (let n = from; n < Math.min(count, from + perCommit); n++) {
        await tx.records.put(Note, { id: `${text().length}-${n}`, n, text: text() });
      }
    });
  }
}

/** What a tenant that asks for a page ten times a second and writes now and then has to wait. */
async function feel(book: Book, ms: number): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + ms;
  for (let n = 0; performance.now() < until; n++) {
    const begun = performance.now();
    await book.records.query(Note).limit(50).list();
    times.push(performance.now() - begun);
    if (n % 10 === 0) await book.records.put(Note, { id: `w-${n}`, n, text: "written" });
    await sleep(10);
  }
  return times;
}

function worst(book: Book): [what: string, read: () => Promise<unknown>][] {
  const all = book.records.query(Note);
  const many = Array.from({ length: 900 }, (_, n) => n);
  const words = Array.from({ length: 100_000 }, (_, n) => `w${n}`).join(" ");
  return [
    ["900 conditions", () => many.reduce((query, n) => query.where((note) => note("text").ne(`x${n}`)), all).count()],
    ["100,000 words", async () => all.search(words).list()],
    [
      "200,000 groups",
      () => all.groupBy((note) => ({ n: note("n"), id: note.key })).aggregate((note) => ({ count: note.count() })),
    ],
    [
      "a page of 1 MB documents",
      () =>
        all
          .where((note) => note("text").startsWith("x"))
          .limit(500)
          .list(),
    ],
    [
      "an endless statement",
      () =>
        book.read((tx) => tx.sql`with recursive n (i) as (select 1 union all select i from n) select count(*) from n`),
    ],
  ];
}

async function repeat(what: string, read: () => Promise<unknown>, going: () => boolean): Promise<string> {
  let worstMs = 0;
  const ends = new Map<string, number>();
  do {
    const begun = performance.now();
    const end = await read().then(
      () => "answered",
      (error: unknown) => (isDaybookError(error) ? error.code : "error"),
    );
    worstMs = Math.max(worstMs, performance.now() - begun);
    ends.set(end, (ends.get(end) ?? 0) + 1);
    await sleep(1);
  } while (going());
  return `${what}: ${[...ends].map(([end, count]) => `${count} × ${end}`).join(", ")}, ${worstMs.toFixed(0)} ms`;
}

/** This process, and with those that it started. */
function memoryMb(): { here: number; all: number } {
  const here = process.memoryUsage.rss() / 1e6;
  const children = `/proc/${process.pid}/task/${process.pid}/children`;
  try {
    const pids = readFileSync(children, "utf8").trim().split(" ").filter(Boolean);
    return { here, all: here + pids.reduce((sum, pid) => sum + privateMb(pid), 0) };
  } catch {
    return { here, all: here };
  }
}

// What it shares with others, such as the program itself, is there once.
function privateMb(pid: string): number {
  try {
    const sizes = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").matchAll(/^Private_\w+:\s+(\d+) kB$/gm);
    return [...sizes].reduce((sum, [, kb]) => sum + Number(kb) / 1000, 0);
  } catch {
    return 0;
  }
}

function mb(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(0)} MB`;
}
