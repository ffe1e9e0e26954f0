// How long the event loop is held while a book of some size is read, copied and examined.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import type { Book } from "../../src/index.ts";
import { openTest, testFolder } from "./open-test.ts";

/** A book with about that many megabytes in it, in rows of one kilobyte and a few of one megabyte. */
export async function openBookOfSize(t: TestContext, megabytes: number): Promise<Book> {
  const { book } = await openTest(t, "sqlite", { durability: "normal" });
  await book.write((tx) => tx.sql`create table page (id integer primary key, body text not null)`);
  await book.write((tx) => tx.sql`create table sheet (id integer primary key, body text not null)`);
  for (let part = 0; part < megabytes; part += 10) {
    await book.write(
      (tx) => tx.sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < 9000)
      insert into page (body) select hex(randomblob(512)) from n`,
    );
  }
  const large = Math.max(1, megabytes / 50);
  await book.write(
    (tx) => tx.sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${large})
    insert into sheet (body) select hex(randomblob(512 * 1024)) from n`,
  );
  return book;
}

export type Holds = { readonly [verb: string]: number };

/** The longest time in milliseconds that the loop was held by each verb. */
export async function measureHolds(t: TestContext, book: Book): Promise<Holds> {
  const folder = testFolder(t);
  const verbs: Record<string, () => Promise<unknown>> = {
    // It counts to a million as well, so that it takes its time on a small book too.
    "a heavy read": () =>
      book.read(
        (tx) => tx.sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000000)
        select (select count(distinct substr(body, 1, 20)) from page) as bodies, (select max(i) from n) as million`,
      ),
    "a long list": () => book.read((tx) => tx.sql`select id, body from page limit 20000`),
    "large rows": () => book.read((tx) => tx.sql`select id, body from sheet`),
    "a backup": () => book.backup(join(folder, "copy.db"), { overwrite: true }),
    "the doctor": () => book.doctor(),
  };
  const holds: Record<string, number> = {};
  for (const [name, run] of Object.entries(verbs)) {
    // What holds the loop does so every time; what the machine happened to do, it does once.
    for (let attempt = 0; attempt < 3 && (holds[name] ?? Infinity) >= 50; attempt++) {
      holds[name] = Math.min(holds[name] ?? Infinity, await longestHoldMs(run));
    }
  }
  t.diagnostic(`the loop was held for at most (ms): ${JSON.stringify(holds)}`);
  return holds;
}

async function longestHoldMs(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let at = readTimes();
  const tick = setInterval(() => {
    const now = readTimes();
    longest = Math.max(longest, now.wallMs - at.wallMs - (now.waitedMs - at.waitedMs));
    at = now;
  }, 1);
  try {
    await systemClock.sleep(5);
    await run();
    await systemClock.sleep(5); // the tick that tells of the last turn
  } finally {
    clearInterval(tick);
  }
  return Math.round(longest * 10) / 10;
}

/** Wall time, and how much of it the main thread was ready to run and got no processor: on a machine that is busy with
 *  other things that is most of the time, and nobody's fault. */
function readTimes(): { wallMs: number; waitedMs: number } {
  return { wallMs: systemClock.monotonic(), waitedMs: Number(readSchedule().split(" ")[1] ?? 0) / 1e6 };
}

function readSchedule(): string {
  try {
    return readFileSync("/proc/self/schedstat", "latin1");
  } catch {
    return ""; // not Linux
  }
}
