// One insert per caller, acknowledged when it is on disk: what group commit gains, and what it costs beside a script
// that has no callers at all.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { open } from "../src/index.ts";
import { migrations } from "../src/open/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import { rawSql, sql } from "../src/storage/sql.ts";
import type { Durability } from "../src/storage/sqlite/connection.ts";
import { bareAutocommit, bareBatches, noteBody, noteTable, openBare, settleWal } from "./harness/bare-sqlite.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { inFlight, oneByOne, type Load } from "./harness/load.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { comparePostgres } from "./storage/postgres.ts";
import type { SteadyMemory } from "./storage/steady-writes.ts";

export const storage: Benchmark = {
  name: "storage",
  title: "one insert per caller, answered when it is on disk",
  async run(report) {
    await noteMemory(report);
    await compareSqlite(report, "full");
    await compareSqlite(report, "normal");
    await comparePostgres(report);
  },
};

async function noteMemory(report: Report): Promise<void> {
  const file = fileURLToPath(import.meta.resolve("./storage/steady-writes.ts"));
  const { stdout } = await promisify(execFile)(process.execPath, [file, scratch("steady.db")]);
  const { openMb, writtenMb, seconds } = JSON.parse(stdout) as SteadyMemory;
  report.note(
    `memory of a process that only writes, 100 in flight: ${openMb} MB, after ${seconds} s ${writtenMb} MB (RSS)`,
  );
}

type Bare = { readonly alone: Load; readonly batches: Load; readonly autocommit: Load };

async function compareSqlite(report: Report, durability: Durability): Promise<void> {
  report.note(`SQLite, durability ${durability}`);
  const db = openBare(scratch(`bare-${durability}.db`), durability);
  for (const text of [...settleWal, noteTable]) db.exec(text);
  const bare = { alone: bareBatches(db, 1), batches: bareBatches(db, 100), autocommit: bareAutocommit(db) };
  await compareEngineUnits(report, durability, bare);
  await compareUserUnits(report, durability, bare);
  db.close();
}

async function compareEngineUnits(report: Report, durability: Durability, bare: Bare): Promise<void> {
  const store = await openStore(scratch(`engine-${durability}.db`), migrations, { durability });
  for (const text of [...settleWal, noteTable]) await store.write((tx) => tx.run(rawSql(text)));
  const insert = (): Promise<number> => store.write((tx) => tx.run(sql`insert into note (body) values (${noteBody})`));
  // The issue sets its goals for the default durability.
  const goal = (goalMin: number): { goalMin?: number } => (durability === "full" ? { goalMin } : {});
  await report.compare("engine units, 100 in flight", inFlight(100, insert), [
    { what: "one transaction per insert", load: bare.alone, ...goal(15) },
    { what: "bare batches of 100", load: bare.batches, ...goal(0.7) },
  ]);
  await report.compare("engine units, one by one", oneByOne(insert), [
    { what: "bare autocommit", load: bare.autocommit, ...goal(0.8) },
  ]);
  await store.close();
}

async function compareUserUnits(report: Report, durability: Durability, bare: Bare): Promise<void> {
  await using book = await open(scratch(`user-${durability}.db`), { durability });
  for (const text of [...settleWal, noteTable]) await book.write((tx) => tx.sql(asTemplate(text)));
  const insert = (): Promise<unknown> => book.write((tx) => tx.sql`insert into note (body) values (${noteBody})`);
  await report.compare("book.write, 100 in flight", inFlight(100, insert), [
    { what: "one transaction per insert", load: bare.alone },
    { what: "bare batches of 100", load: bare.batches },
  ]);
  await report.compare("book.write, one by one", oneByOne(insert), [
    { what: "bare autocommit", load: bare.autocommit },
  ]);
}

function asTemplate(text: string): TemplateStringsArray {
  return Object.assign([text], { raw: [text] });
}
