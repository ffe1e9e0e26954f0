// The worst reads that one tenant may ask for, all at once and again and again, and what another tenant feels of them. The
// package is measured as users get it: from source, each process that reads would hold what strips the types as well.
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { limits } from "../../src/core/limits.ts";
import type * as Daybook from "../../src/index.ts";
import { durablePostgres } from "../../test/support/postgres.ts";
import { median, quantile } from "../harness/median.ts";
import type { Report } from "../harness/report.ts";
import { scratch } from "../harness/scratch.ts";
import { buildPackage } from "../open/build-package.ts";
import { watchLoop, type Held } from "./held.ts";
import { startIdleLoop, type IdleLoop } from "./idle-loop.ts";
import { startSampler, type Sampler } from "./sampler.ts";

const { entity, isDaybookError, open } = (await import(
  pathToFileURL((await buildPackage()).index).href
)) as typeof Daybook;

const schema = z.object({ id: z.string(), n: z.number(), text: z.string() });
const Note = entity("note", { schema, key: "id", search: ["text"] });
const notes = 200_000;
const large = 100;
const rounds = 3;
const aloneMs = 8000;
const besideMs = 11_000;
const goals = { p99Max: 3, loopMsMax: 50, walMbMax: 64, memoryMbMax: 100, endMsMax: limits.readMs * 1.1 };

export async function measureWorstSqlite(report: Report): Promise<void> {
  const path = scratch("worst.db");
  await measure(report, "SQLite", path, `${path}-wal`);
}

export async function measureWorstPostgres(report: Report): Promise<void> {
  const server = await durablePostgres();
  try {
    await measure(report, "PostgreSQL", server.url, null);
  } finally {
    await server.stop();
  }
}

async function measure(report: Report, name: string, url: string, walPath: string | null): Promise<void> {
  const book = await open(url, { use: [Note], worker: false });
  const [noisy, quiet] = [book.tenant("noisy"), book.tenant("quiet")];
  await fill(noisy, notes, () => "a few words");
  await fill(noisy, large, () => "x".repeat(1_000_000));
  await fill(quiet, 1000, () => "a few words");
  const sampler = startSampler(walPath);
  const idle = startIdleLoop();
  // The first answers are the compiler's.
  await feel(quiet, 1000);
  const found: Round[] = [];
  for (let round = 0; round < rounds; round++) found.push(await oneRound(noisy, quiet, sampler, idle));
  await sampler.stop();
  await idle.stop();
  tell(report, name, found, walPath !== null);
  const closing = performance.now();
  await book.close();
  report.note(`${name}: closed within ${(performance.now() - closing).toFixed(0)} ms`);
}

type Round = {
  readonly alone: readonly number[];
  readonly beside: readonly number[];
  readonly held: Held;
  /** For how long a thread that does nothing was held meanwhile. */
  readonly idleMs: number;
  readonly walMb: number;
  readonly memoryMb: number;
  readonly attacks: readonly Attacked[];
};

async function oneRound(noisy: Daybook.Book, quiet: Daybook.Book, sampler: Sampler, idle: IdleLoop): Promise<Round> {
  const alone = await feel(quiet, aloneMs);
  const before = await sampler.most();
  let going = true;
  await idle.heldMs();
  const loop = watchLoop();
  const attacks = worst(noisy).map(([what, read]) => repeat(what, read, () => going));
  const beside = await feel(quiet, besideMs);
  const held = loop.stop();
  const idleMs = await idle.heldMs();
  going = false;
  const most = await sampler.most();
  return {
    alone,
    beside,
    held,
    idleMs,
    walMb: most.walMb,
    memoryMb: most.memoryMb - before.memoryMb,
    attacks: await Promise.all(attacks),
  };
}

function tell(report: Report, name: string, found: readonly Round[], hasWal: boolean): void {
  for (const [index, first] of (found[0]?.attacks ?? []).entries()) {
    const all = found.map(({ attacks }) => attacks[index] ?? first);
    const ends = Map.groupBy(
      all.flatMap((each) => each.ends),
      (end) => end,
    );
    const how = [...ends].map(([end, { length }]) => `${length} × ${end}`).join(", ");
    const worstMs = Math.max(...all.map((each) => each.worstMs));
    report.waits(`${name}: ${first.what}, the longest (${how})`, { ours: [worstMs], goalMsMax: goals.endMsMax });
  }
  const pick = (of: (ms: readonly number[]) => number): { ours: number[]; reference: number[] } => ({
    ours: found.map(({ beside }) => of(beside)),
    reference: found.map(({ alone }) => of(alone)),
  });
  const samples = found.reduce((sum, { alone }) => sum + alone.length, 0);
  report.waits(`${name}: another tenant's list, p50 ÷ alone`, pick(median));
  report.waits(`${name}: another tenant's list, p99 ÷ alone (${samples} samples alone)`, {
    ...pick((ms) => quantile(ms, 0.99)),
    goalMax: goals.p99Max,
  });
  const most = (of: (round: Round) => number): number => Math.max(...found.map(of));
  report.waits(`${name}: the loop was held for at most; a thread that does nothing`, {
    ours: [most(({ held }) => held.passedMs)],
    reference: [most(({ idleMs }) => idleMs)],
    goalMsMax: goals.loopMsMax,
  });
  report.waits(`${name}: of that the loop's own work, in processor time`, {
    ours: [most(({ held }) => held.workedMs)],
    goalMsMax: goals.loopMsMax,
  });
  if (hasWal) report.size(`${name}: the WAL, at most`, { mb: most(({ walMb }) => walMb), goalMbMax: goals.walMbMax });
  report.size(`${name}: growth of the process with its readers, at most`, {
    mb: most(({ memoryMb }) => memoryMb),
    goalMbMax: goals.memoryMbMax,
  });
}

async function fill(book: Daybook.Book, count: number, text: () => string): Promise<void> {
  const perCommit = text().length > 1000 ? 20 : 10_000;
  for (let from = 0; from < count; from += perCommit) {
    await book.write(async (tx) => {
      for (let n = from; n < Math.min(count, from + perCommit); n++) {
        await tx.records.put(Note, { id: `${text().length}-${n}`, n, text: text() });
      }
    });
  }
}

/** What a tenant that asks for a page every few milliseconds and writes now and then has to wait. */
async function feel(book: Daybook.Book, ms: number): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + ms;
  for (let n = 0; performance.now() < until; n++) {
    const begun = performance.now();
    await book.records.query(Note).limit(50).list();
    times.push(performance.now() - begun);
    if (n % 50 === 0) await book.records.put(Note, { id: `w-${n}`, n, text: "written" });
    await sleep(2);
  }
  return times;
}

function worst(book: Daybook.Book): [what: string, read: () => Promise<unknown>][] {
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

type Attacked = { readonly what: string; readonly ends: readonly string[]; readonly worstMs: number };

async function repeat(what: string, read: () => Promise<unknown>, going: () => boolean): Promise<Attacked> {
  let worstMs = 0;
  const ends: string[] = [];
  do {
    const begun = performance.now();
    const end = await read().then(
      () => "answered",
      (error: unknown) => (isDaybookError(error) ? error.code : "error"),
    );
    worstMs = Math.max(worstMs, performance.now() - begun);
    ends.push(end);
    await sleep(1);
  } while (going());
  return { what, ends, worstMs };
}
