// How the databases would run the reads of records: growth is tested by looking at plans, not by timing.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { Client } from "pg";
import { z } from "zod";
import { entity, open, relation, type UserTx } from "../../src/index.ts";
import { fieldIndexes } from "../../src/records/indexes/declared-index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Thing = entity("thing", {
  schema: z.object({
    id: z.string(),
    status: z.string(),
    n: z.number(),
    place: z.object({ city: z.string() }),
    free: z.string(),
    tags: z.array(z.string()).default([]),
  }),
  key: "id",
  indexes: ["status", { path: "n", temporal: true }, ["place", "city"], { path: "tags", each: true }],
});
const Near = relation("near", { from: Thing, to: Thing });

type Read = (tx: UserTx) => Promise<unknown>;

/** A read, and what its plan must show on each engine. */
const reads: Readonly<Record<string, { readonly run: Read; readonly sqlite: RegExp; readonly postgres: RegExp }>> = {
  "one by its key": {
    run: (tx) => tx.records.find(Thing, "k1"),
    sqlite:
      /SEARCH (?:daybook_)?record USING INDEX sqlite_autoindex_daybook_record_1 \(type_seq=\? AND tenant_id=\? AND key=\?\)/,
    postgres: /Index Scan using daybook_record_type_seq_tenant_id_key_key on daybook_record/,
  },
  "one as it was": {
    run: (tx) => tx.records.find(Thing, "k1", { asOf: 3 }),
    sqlite:
      /SEARCH (?:daybook_)?record_version USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\? AND from_commit<\?\)/,
    postgres:
      /Index Scan Backward using daybook_record_version_tenant_id_type_seq_key_from_commit_key on daybook_record_version/,
  },
  // However many versions a key has, its newest is one seek.
  "many by their keys": {
    run: (tx) =>
      tx.records.putMany(
        Thing,
        ["k1", "new"].map((id) => ({ id, status: "s", n: 1, place: { city: "c" }, free: "x" })),
      ),
    sqlite:
      /SEARCH record USING INDEX sqlite_autoindex_daybook_record_1 \(type_seq=\? AND tenant_id=\? AND key=\?\)\n[^]*CORRELATED SCALAR SUBQUERY \d+\n.*SEARCH past USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\?\)/,
    postgres:
      /Limit.*\n.*Index Scan Backward using daybook_record_version_tenant_id_type_seq_key_from_commit_key on daybook_record_version past/,
  },
  "an indexed text": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing("status").eq("s7"))
        .list(),
    sqlite: /SEARCH r USING INDEX record_field_\w+ \(type_seq=\? AND <expr>=\?\)/,
    postgres: /Scan (?:using|on) record_field_\w+/,
  },
  "an indexed text that begins": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing("place", "city").startsWith("c1"))
        .list(),
    sqlite: /SEARCH r USING INDEX record_field_\w+ \(type_seq=\? AND <expr>>\? AND <expr><\?\)/,
    postgres: /Scan (?:using|on) record_field_\w+/,
  },
  "one of some indexed numbers": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing("n").in([1, 2]))
        .list(),
    sqlite: /SEARCH r USING INDEX record_field_\w+ \(type_seq=\? AND <expr>=\?\)/,
    postgres: /Scan (?:using|on) record_field_\w+_number/,
  },
  "an item of an indexed array": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing("tags").any((tag) => tag().eq("t7")))
        .list(),
    sqlite:
      /SEARCH r USING INTEGER PRIMARY KEY \(rowid=\?\)\n.*\n?SEARCH (?:daybook_)?record_item USING PRIMARY KEY \(tenant_id=\? AND path=\? AND type_seq=\? AND value=\?\)|SEARCH (?:daybook_)?record_item USING PRIMARY KEY/,
    postgres: /Scan on record_items_\w+/,
  },
  "an indexed number of the past": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing("n").eq(1))
        .asOf(3)
        .list(),
    sqlite: /SEARCH r USING INDEX record_version_field_\w+ \(type_seq=\? AND <expr>=\?\)/,
    postgres: /Scan (?:using|on) record_version_(?:field_\w+_number|tenant_id\w+)|Scan (?:using|on) versions_closed/,
  },
  "a scan of the past": {
    run: (tx) => tx.records.query(Thing).asOf(3).count(),
    sqlite: /SEARCH r USING INDEX versions_closed \(tenant_id=\? AND type_seq=\? AND to_commit>\?\)/,
    postgres: /Scan (?:using|on) versions_closed/,
  },
  "a page in the order of keys": {
    run: (tx) => tx.records.query(Thing).limit(10).list(),
    sqlite: /SEARCH r USING INDEX sqlite_autoindex_daybook_record_1 \(type_seq=\? AND tenant_id=\?\)$/m,
    postgres: /Limit.*\n.*Index Scan using daybook_record_type_seq_tenant_id_key_key on daybook_record/,
  },
  // PostgreSQL sorts the records that were found once, although two selects ask for their order.
  "a page in the order of a field": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .orderBy((thing) => thing("free"), "desc")
        .limit(10)
        .list(),
    sqlite: /^(?!.*TEMP B-TREE[^]*TEMP B-TREE)/,
    postgres: /^Subquery Scan on found .*\n *->  Limit .*\n *->  Sort /m,
  },
  "a count": {
    run: (tx) => tx.records.query(Thing).count(),
    sqlite: /SEARCH r USING COVERING INDEX \w+ \(type_seq=\?\)$/m,
    postgres: /Index Only Scan|Index Scan|Bitmap/,
  },
  "the relations of one": {
    run: (tx) => tx.records.delete(Thing, "k1", { unlink: true }),
    sqlite: /USING INDEX relations_from .*\n(?:.*\n)*.*USING INDEX relations_to/,
    postgres: /Scan (?:using|on) relations_(?:from|to)/,
  },
  "those to which a rare one is related": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing.related(Near, "out").some((other) => other("status").eq("s7")))
        .list(),
    sqlite:
      /SEARCH r USING INDEX sqlite_autoindex_daybook_record_1 \(type_seq=\? AND tenant_id=\? AND key=\?\)\nLIST SUBQUERY[^]*SEARCH link\d+ USING INDEX relations_to [^]*SEARCH end\d+ USING INDEX record_field_/,
    postgres: /Scan (?:using|on) relations_(?:from|to)/,
  },
  "those to which a common one is related": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing.related(Near, "out").some((other) => other("free").eq("x")))
        .list(),
    sqlite:
      /link\d+ (?:EXISTS )?USING INDEX relations_from \(tenant_id=\? AND from_type_seq=\? AND from_key=\? AND type_seq=\?\)/,
    postgres: /Scan (?:using|on) relations_(?:from|to)/,
  },
  "those to which one was related": {
    run: (tx) =>
      tx.records
        .query(Thing)
        .where((thing) => thing.related(Near, "in").some((other) => other("free").eq("x")))
        .asOf(3)
        .list(),
    sqlite:
      /USING INDEX versions_to \(tenant_id=\? AND to_type_seq=\? AND to_key=\? AND to_commit>\?\)[^]*USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\? AND from_commit=\?\)/,
    postgres: /Scan (?:using|on) (?:versions_to|versions_closed)/,
  },
  "sums over an end, as it was": {
    run: (tx) =>
      tx.records
        .query(Near)
        .asOf(3)
        .aggregate((near) => ({ sum: near.to("n").sum() })),
    sqlite:
      /SEARCH end\d+ USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\? AND from_commit=\?\) LEFT-JOIN/,
    postgres: /Scan (?:using|on) (?:daybook_record_version_tenant_id\w+|versions_closed)/,
  },
  "the feed": {
    run: (tx) => tx.records.since(1),
    sqlite:
      /SEARCH change USING PRIMARY KEY \(tenant_id=\? AND commit_id>\? AND commit_id<\?\)\n(?:.*\n)*SEARCH before USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\? AND from_commit=\?\)/,
    postgres: /Scan (?:using|on) daybook_record_change_pkey/,
  },
  "the commits of one": {
    run: (tx) => tx.records.commits({ actor: "ada" }),
    sqlite: /SEARCH record_commit USING INDEX commits_by_actor \(tenant_id=\? AND actor=\? AND id>\? AND id<\?\)$/m,
    postgres: /Index Scan Backward using (?:commits_by_actor|daybook_record_commit_pkey)/,
  },
  "the commits of a type": {
    run: (tx) => tx.records.commits({ type: Thing, actor: "ada" }),
    sqlite:
      /SEARCH touched USING PRIMARY KEY \(tenant_id=\? AND type_seq=\? AND commit_id>\? AND commit_id<\?\)\nSEARCH record_commit USING PRIMARY KEY \(tenant_id=\? AND id=\?\)$/,
    postgres: /Scan Backward using daybook_record_commit_type_pkey/,
  },
  "the commits of a time": {
    run: (tx) => tx.records.commits({ since: 1, until: 2 }),
    sqlite:
      /commits_by_time \(tenant_id=\? AND clock_from=\? AND committed_at>\?\)[^]*SEARCH record_commit USING PRIMARY KEY \(tenant_id=\? AND id>\? AND id<\?\)$/,
    postgres: /commits_by_time[^]*daybook_record_commit_pkey/,
  },
  "a difference": {
    run: (tx) => tx.records.diff(1, 3),
    sqlite:
      /SEARCH va USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\? AND from_commit=\?\)/,
    postgres: /Scan (?:using|on) daybook_record_change_pkey/,
  },
  // Its versions first, by the index that ends the search, then the commits of those, one by one.
  "the history of one": {
    run: (tx) => tx.records.history(Thing, "k1"),
    sqlite:
      /SEARCH (?:daybook_)?record_version USING INDEX sqlite_autoindex_daybook_record_version_1 \(tenant_id=\? AND type_seq=\? AND key=\? AND from_commit>\?\)\n(?:.*\n)*SCAN version\nSEARCH made USING PRIMARY KEY \(tenant_id=\? AND id=\?\)/,
    postgres:
      /Index Scan using daybook_record_version_tenant_id_type_seq_key_from_commit_key on daybook_record_version/,
  },
};

for (const backend of backends) {
  describe(backend, () => {
    test("every read of records finds its rows by an index", async (t) => {
      const texts: string[] = [];
      const { book, url } = await openTest(t, backend, {
        use: [Thing, Near],
        worker: false,
        fault: (moment, text) => void (moment === "before" && texts.push(text)),
      });
      const all = (round: number) =>
        Array.from({ length: 1500 }, (_, index) => ({
          id: `k${index}`,
          status: `s${index % 997}`,
          n: index + round,
          free: "x",
          place: { city: `c${index % 500}` },
          tags: [`t${index % 700}`],
        }));
      for (const round of [0, 1, 2]) await book.records.putMany(Thing, all(round));
      await book.records.link(Near, { from: "k1", to: "k2" });
      await analyze(backend, url);

      for (const [name, read] of Object.entries(reads)) {
        const plan = await book.write(async (tx) => {
          texts.length = 0;
          await read.run(tx);
          return (await plansOf(backend, url, [...texts])).join("\n");
        });
        assert.match(plan, read[backend], name);
        // What several arms found is read once more, as a list.
        assert.doesNotMatch(plan.replace(/(CO-ROUTINE r\n[^]*?)\nSCAN r\b/, "$1"), trouble[backend], name);
      }
    });

    test("the outermost select of a list asks for the order", async (t) => {
      const texts: string[] = [];
      const { book } = await openTest(t, backend, {
        use: [Thing],
        worker: false,
        fault: (moment, text) => void (moment === "before" && texts.push(text)),
      });
      await book.records.put(Thing, { id: "k1", status: "s", n: 1, place: { city: "c" }, free: "x" });
      texts.length = 0;

      await book.write((tx) =>
        tx.records
          .query(Thing)
          .orderBy((thing) => thing("n"))
          .list(),
      );

      const [list = ""] = texts.filter((text) => text.includes("limit"));
      assert.match(outermost(list), /order by/);
    });

    test("an index that is declared later is built for existing records, once", async (t) => {
      const Bare = entity("thing", { schema: Thing.schema, key: () => "k1" });
      const { book, url } = await openTest(t, backend, { use: [Bare], worker: false });
      await book.records.put(Bare, { id: "k1", status: "s", n: 1, place: { city: "c" }, free: "x" });
      await book.close();

      const found: string[][] = [];
      for (let times = 0; times < 2; times++) {
        await using again = await open(url, { use: [Thing], worker: false });
        assert.equal(
          await again.records
            .query(Thing)
            .where((thing) => thing("status").eq("s"))
            .count(),
          1,
        );
        found.push(await indexNames(backend, url));
        assert.deepEqual(await again.doctor(), []);
      }

      const wanted = [
        ...fieldIndexes(backend, ["status"], "record"),
        ...fieldIndexes(backend, ["n"], "record_version"),
      ];
      for (const { name } of wanted) assert.ok(found[0]?.includes(name), name);
      assert.deepEqual(found[0], found[1]);
    });
  });
}

// Without statistics, as in a book that is being filled, PostgreSQL takes a join of a few keys for one of half the table.
test("postgres: writers that share a transaction find their keys by a seek", async (t) => {
  const texts: string[] = [];
  const { book, url } = await openTest(t, "postgres", {
    use: [Thing, Near],
    worker: false,
    fault: (moment, text) => void (moment === "before" && texts.push(text)),
  });
  const one = (id: string) => ({ id, status: "s", n: 1, free: "x", place: { city: "c" } });
  await book.records.put(Thing, one("k0"));
  await run(
    url,
    `insert into daybook.daybook_record (tenant_id, type_seq, key, revision, schema_version, from_commit, body)
      select tenant_id, type_seq, 'k' || n, 1, schema_version, 1, body from daybook.daybook_record, generate_series(1, 20000) as n`,
  );
  texts.length = 0;
  await Promise.all(["k1", "k2", "new"].map((id) => book.records.put(Thing, one(id))));

  const [asked = ""] = texts.filter((text) => text.includes("from unnest") && text.includes("asked"));
  const plan = (await run(url, `set search_path to daybook; explain (generic_plan) ${asked}`)).join("\n");
  const seeks =
    /Index Scan using daybook_record_type_seq_tenant_id_key_key on daybook_record .*\n *Index Cond: .*\(key = asked\.key\)/;
  assert.match(plan, seeks);
  assert.doesNotMatch(plan, /Hash|Merge/);
});

// Reading a whole table, or sorting what an index could give in order.
const trouble: Readonly<Record<Backend, RegExp>> = {
  sqlite: /SCAN (?:daybook_)?(?:record|record_version|record_change|r|change|now|before)\b(?! USING)/,
  postgres: /Seq Scan on daybook_(?:record|record_version|record_change)\b/,
};

/** A statement without all that it has in parentheses. */
function outermost(text: string): string {
  const less = text.replaceAll(/\([^()]*\)/g, "");
  return less === text ? text : outermost(less);
}

async function plansOf(backend: Backend, url: string, texts: readonly string[]): Promise<string[]> {
  const selects = texts.filter((text) => /^\s*select/i.test(text) && /\b(?:daybook_)?record/.test(text));
  if (backend === "sqlite") {
    const db = new DatabaseSync(url, { readOnly: true });
    const plans = selects.map((text) =>
      db
        .prepare(`explain query plan ${text}`)
        .all()
        .map((row) => String(row["detail"]))
        .join("\n"),
    );
    db.close();
    return plans;
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("set search_path to daybook; set enable_seqscan = off");
  const plans: string[] = [];
  for (const text of selects) {
    const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (generic_plan) ${text}`);
    plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
  }
  await client.end();
  return plans;
}

async function indexNames(backend: Backend, url: string): Promise<string[]> {
  const like = "'record%field%'";
  if (backend === "sqlite") {
    const db = new DatabaseSync(url, { readOnly: true });
    const rows = db
      .prepare(`select name from sqlite_schema where type = 'index' and name like ${like} order by name`)
      .all();
    db.close();
    return rows.map((row) => String(row["name"]));
  }
  return run(url, `select relname as name from pg_class where relname like ${like} order by relname`);
}

async function analyze(backend: Backend, url: string): Promise<void> {
  if (backend === "postgres")
    await run(
      url,
      "vacuum analyze daybook.daybook_record, daybook.daybook_record_version, daybook.daybook_record_change",
    );
}

async function run(url: string, text: string): Promise<string[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const answer = await client.query<Record<string, string>>(text);
  await client.end();
  // Of several statements the last one counts.
  const last = Array.isArray(answer) ? (answer as (typeof answer)[]).at(-1) : answer;
  return (last?.rows ?? []).map((row) => String(Object.values(row)[0]));
}
