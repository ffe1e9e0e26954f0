// What asOf(c) returns never changes once c is committed (R3): the stored bytes behind it are the same after thousands of
// further commits, deletes and an index.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { entity, open, seededRandom, type Book } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import { seed } from "../support/property.ts";

const schema = z.object({ id: z.string(), n: z.number(), text: z.string() });
const Thing = entity("thing", { schema, key: "id" });
const Indexed = entity("thing", { schema, key: "id", indexes: ["text", { path: "n", temporal: true }] });
const long = process.env["DAYBOOK_TEST_SEED"] === "random";
const [early, late, sampled] = long ? [2000, 10_000, 200] : [100, 300, 40];

for (const backend of backends) {
  test(`${backend}: the bytes behind ${sampled} commits are the same after ${late} further ones, deletes and an index`, async (t) => {
    const random = seededRandom(seed);
    const { book, url } = await openTest(t, backend, { use: [Thing], worker: false, durability: "normal" });
    await commitMany(book, early, random);
    const samples = Array.from({ length: sampled }, () => 1 + Math.floor(random() * early));
    const before = await bytesAt(book, backend, samples);
    const read = await Promise.all(samples.slice(0, 5).map((asOf) => book.records.query(Thing).asOf(asOf).list()));

    await commitMany(book, late, random);
    await book.close();
    await using again = await open(url, { use: [Indexed], worker: false });

    assert.deepEqual(await bytesAt(again, backend, samples), before);
    const reread = await Promise.all(samples.slice(0, 5).map((asOf) => again.records.query(Indexed).asOf(asOf).list()));
    assert.deepEqual(reread, read);
    assert.equal(await again.records.head(), early + late);
  });
}

/** That many commits, in a few transactions' time: each unit is a commit, and many units share a disk write. */
async function commitMany(book: Book, count: number, random: () => number): Promise<void> {
  const start = (await book.records.head()) ?? 0;
  for (let done = 0; done < count;) {
    const units = Array.from({ length: Math.min(50, count - done) }, (_, each) => {
      const id = `k${Math.floor(random() * 60)}`;
      const n = start + done + each;
      // A delete of what is not there is no commit, so it is made one by what comes with it.
      if (random() < 0.2) {
        return book.write(async (tx) => {
          await tx.records.delete(Thing, id);
          await tx.records.put(Thing, { id: "anchor", n, text: "x" });
        });
      }
      return book.records.put(Thing, { id, n, text: `t${n % 7}` });
    });
    await Promise.all(units);
    done += units.length;
  }
}

async function bytesAt(book: Book, backend: Backend, commits: readonly number[]): Promise<string[][]> {
  const found: string[][] = [];
  for (const commit of commits) {
    const rows = await book.read((tx) =>
      backend === "sqlite"
        ? tx.sql<{
            bytes: string;
          }>`select key || hex(body) || revision || schema_version as bytes from daybook_record where from_commit <= ${commit}
            union all select key || hex(body) || revision || schema_version from daybook_record_version
            where from_commit <= ${commit} and to_commit > ${commit} order by 1`
        : tx.sql<{
            bytes: string;
          }>`select key || body::text || revision || schema_version as bytes from daybook_record where from_commit <= ${commit}
            union all select key || body::text || revision || schema_version from daybook_record_version
            where from_commit <= ${commit} and to_commit > ${commit} order by 1`,
    );
    found.push(rows.map(({ bytes }) => bytes));
  }
  return found;
}
