// Records against a plain table, against the statements of the design they come from, and against bare inserts. One million
// versions of a hundred thousand keys are made with SQL, since making them by commits would take longer than measuring.
import type { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { entity, open, type Book } from "../src/index.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { openBare } from "./harness/bare-sqlite.ts";
import { inLoop, oneByOne } from "./harness/load.ts";
import { median } from "./harness/median.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";
import { fillRecords, keysCount, versionsEach } from "./records/fill.ts";
import { comparePostgresCommits } from "./records/postgres.ts";

const Item = entity("item", {
  schema: z.object({ id: z.string(), status: z.string(), n: z.number(), text: z.string() }),
  key: "id",
  indexes: ["status"],
});

export const records: Benchmark = {
  name: "records",
  title: `${(keysCount * versionsEach).toLocaleString("en")} versions of ${keysCount.toLocaleString("en")} keys`,
  async run(report) {
    const path = scratch("records.db");
    const book = await open(path, { use: [Item], worker: false, durability: "normal" });
    await book.records.put(Item, { id: "k0000000", status: "s0", n: 0, text: "x" });
    fillRecords(path);
    const db = openBare(path, "normal");
    // The reader's own connection: what is measured is the statement, on both sides in this thread.
    await compareNow(report, db);
    comparePast(report, db);
    await compareKeys(report, book, db);
    await compareCommits(report, book);
    db.close();
    await book.close();
    await comparePostgresCommits(report);
  },
};

// The only type of the book.
const typeSeq = 1;
const mine = `tenant_id = 'default' and type_seq = ${typeSeq}`;

async function compareNow(report: Report, db: DatabaseSync): Promise<void> {
  const time = (text: string): (() => number) => {
    const statement = db.prepare(text);
    return () => {
      statement.all();
      return 1;
    };
  };
  const pairs: readonly (readonly [string, string, string])[] = [
    [
      "list of all, by key",
      `select key, body, revision, from_commit from daybook_record as r where ${mine} order by key`,
      "select key, body, n, n from plain where tenant = 'default' order by key",
    ],
    [
      "first page",
      `select key, body, revision, from_commit from daybook_record as r where ${mine} order by key limit 51`,
      "select key, body, n, n from plain where tenant = 'default' order by key limit 51",
    ],
    [
      "count",
      `select count(*) from daybook_record as r where type_seq = ${typeSeq}`,
      "select count(*) from plain where tenant = 'default'",
    ],
  ];
  for (const [what, ours, plain] of pairs) {
    await report.compare(what, inLoop(time(ours)), [
      { what: "a plain table", load: inLoop(time(plain)), goalMin: 0.83 },
    ]);
  }
  const value = `(case when json_type(body, '$."status"') in ('object', 'array') then null else json_extract(body, '$."status"') end)`;
  const indexed = `select key, body from daybook_record as r where +tenant_id = 'default' and type_seq = ${typeSeq} and ${value} = 's77' and json_type(body, '$."status"') = 'text' order by key limit 51`;
  const seed = `select eh.entity_key, eh.fields_json, eh.commit_id from seed_history eh inner join (select entity_key, max(commit_id) as max_cid
    from seed_history where entity_type = 'item' group by entity_key) latest on eh.entity_key = latest.entity_key
    and eh.commit_id = latest.max_cid where eh.entity_type = 'item' and json_extract(eh.fields_json, '$.status') = 's77'`;
  const seedMs = [0, 1, 2].map(() => elapsed(time(seed)));
  const ourMs = Array.from({ length: 200 }, () => elapsed(time(indexed)));
  report.times("filter on an indexed field (reference: the seed's statement)", ourMs, {
    goalMsMax: median(seedMs) / 1000,
    referenceMs: seedMs,
  });
}

/** The cost of a scan of the past, the further back the more has changed since. */
function comparePast(report: Report, db: DatabaseSync): void {
  for (const [what, back] of [
    ["10,000", 10_000],
    ["100,000", 100_000],
    ["900,000", 900_000],
  ] as const) {
    const moment = keysCount * versionsEach - back;
    const statement =
      db.prepare(`select count(*) from (select key from daybook_record where ${mine} and from_commit <= ${moment}
      union all select key from daybook_record_version where ${mine} and to_commit > ${moment} and from_commit <= ${moment})`);
    const samples = [0, 1, 2].map(() => elapsed(() => statement.all().length));
    report.times(`count of all as of ${what} changes ago`, samples);
  }
}

async function compareKeys(report: Report, book: Book, db: DatabaseSync): Promise<void> {
  const past = db.prepare(`select key, body from (select key, body, to_commit from daybook_record_version
      where ${mine} and key = ? and from_commit <= ? order by from_commit desc limit 1) as past where to_commit > ?
    union all select key, body from daybook_record where ${mine} and key = ? and from_commit <= ? limit 1`);
  const bare = db.prepare(
    "select entity_key, fields_json from seed_history where entity_type = 'item' and entity_key = ? and commit_id <= ? order by commit_id desc limit 1",
  );
  let [one, other] = [0, 0];
  const key = (n: number): string => `k${String((n * 7919) % keysCount).padStart(7, "0")}`;
  const moment = (n: number): number => 1 + ((n * 104_729) % (keysCount * versionsEach));
  const ours = inLoop(() => {
    const [k, at] = [key(one), moment(one++)];
    past.get(k, at, at, k, at);
    return 1;
  });
  const reference = inLoop(() => {
    bare.get(key(other), moment(other++));
    return 1;
  });
  await report.compare("as of by key, the statement", ours, [
    { what: "a bare indexed lookup", load: reference, goalMin: 0.8 },
  ]);
  await report.compare(
    "book.records.get as of, one by one",
    oneByOne(() => book.records.find(Item, key(one), { asOf: moment(one++) })),
    [{ what: "a bare indexed lookup", load: reference }],
  );
}

async function compareCommits(report: Report, book: Book): Promise<void> {
  let n = 0;
  const document = (): { id: string; status: string; n: number; text: string } => ({
    id: `w${n++ % 50_000}`,
    status: `s${n % 1000}`,
    n,
    text: "x".repeat(100),
  });
  const plain = bareUpserts("");
  const indexed = bareUpserts("create index by_status on plain (body ->> '$.status')");
  for (const size of [1, 100]) {
    const ours = async (slice: { over(): boolean }): Promise<number> => {
      let done = 0;
      for (; !slice.over(); done += size) await book.records.putMany(Item, Array.from({ length: size }, document));
      return done;
    };
    await report.compare(`entities with an indexed field, commits of ${size}`, ours, [
      { what: "bare upserts, one table with the key", load: inLoop(() => plain.write(size, document)) },
      {
        what: "bare upserts, one table with the key and that index",
        load: inLoop(() => indexed.write(size, document)),
        ...(size === 100 ? { goalMin: 0.2 } : {}),
      },
    ]);
  }
  plain.close();
  indexed.close();
}

type BareUpserts = { write(size: number, document: () => { id: string }): number; close(): void };

/** What a careful person would write for the newest document of each key alone. Its documents change, as ours do: SQLite does not write
 *  a row that is the same. */
function bareUpserts(index: string): BareUpserts {
  const db = openBare(scratch(index === "" ? "bare.db" : "bare-indexed.db"), "normal");
  db.exec(`create table plain (key text primary key, body text not null) strict; ${index}`);
  const insert = db.prepare(
    "insert into plain (key, body) values (?, ?) on conflict do update set body = excluded.body",
  );
  return {
    write(size, document) {
      db.exec("begin immediate");
      for (let each = 0; each < size; each++) {
        const made = document();
        insert.run(made.id, JSON.stringify(made));
      }
      db.exec("commit");
      return size;
    },
    close: () => db.close(),
  };
}

function elapsed(run: () => unknown): number {
  const begun = performance.now();
  run();
  return performance.now() - begun;
}
