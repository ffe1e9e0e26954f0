// What a read costs on its three ways: on this thread, on the reader thread, and as a snapshot of one moment.
import { DatabaseSync } from "node:sqlite";
import { open } from "../src/index.ts";
import { migrations } from "../src/open/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import { rawSql, sql } from "../src/storage/sql.ts";
import { eachRow } from "../src/storage/word.ts";
import { noteBody, noteTable } from "./harness/bare-sqlite.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { inLoop, oneByOne } from "./harness/load.ts";
import { scratch } from "./harness/scratch.ts";
import { startBareReader } from "./reads/bare-reader.ts";
import { measureWorstPostgres, measureWorstSqlite } from "./reads/worst.ts";

const rows = 10_000;

export const reads: Benchmark = {
  name: "reads",
  title: `a table of ${rows} notes, read by id and as a whole`,
  async run(report) {
    const path = scratch("reads.db");
    const store = await openStore(path, migrations);
    await store.write((tx) => tx.run(rawSql(noteTable)));
    const notes = Array.from({ length: rows }, () => ({ body: noteBody }));
    await store.write((tx) => tx.run(sql`insert into note (body) ${eachRow({ body: "text" }, notes)}`));
    const book = await open(path, { attach: false });
    const db = new DatabaseSync(path, { readOnly: true });
    const thread = startBareReader(path);
    let last = 0;
    const nextId = (): number => (last = (last % rows) + 1);
    const point = db.prepare("select id, body from note where id = ?");
    const list = db.prepare("select id, body from note");
    const askThread = { what: "bare thread, one message each way", load: oneByOne(() => thread.get(nextId())) };

    await report.compare(
      "point read",
      oneByOne(() => store.read(sql`select id, body from note where id = ${nextId()}`)),
      [{ what: "bare get", load: inLoop(() => (point.get(nextId()) === undefined ? 0 : 1)) }],
    );
    await report.compare(
      "heavy read of one row",
      oneByOne(() => store.readHeavy(sql`select id, body from note where id = ${nextId()}`)),
      [askThread],
    );
    await report.compare(
      "book.read (snapshot) of one row",
      oneByOne(() => book.read((tx) => tx.sql`select id, body from note where id = ${nextId()}`)),
      [askThread],
    );
    await report.compare(
      `heavy read of ${rows} rows`,
      oneByOne(() => store.readHeavy(sql`select id, body from note`)),
      [{ what: "bare all, on the main thread", load: inLoop(() => (list.all().length === rows ? 1 : 0)) }],
    );
    await thread.stop();
    db.close();
    await book.close();
    await store.close();
    await measureWorstSqlite(report);
    await measureWorstPostgres(report);
  },
};
