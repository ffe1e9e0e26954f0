// A unit that writes two rows: whoever finds one without the other has found a half unit.
import assert from "node:assert/strict";
import type { Migration } from "../../src/storage/migrate.ts";
import { sql, type Sql } from "../../src/storage/sql.ts";
import type { Store, Tx, WriteOptions } from "../../src/storage/store.ts";
import { integer, strict } from "../../src/storage/word.ts";

export const pairTable: Sql = sql`create table pair (
  id text not null, half ${integer} not null, filler text not null default '', primary key (id, half)
)${strict}`;

/** The only migration of a store that holds pairs and nothing else. */
export const pairMigrations: readonly Migration[] = [{ number: 1, name: "pair", up: [pairTable] }];

export async function createPairs(store: Store): Promise<void> {
  await store.write((tx) => tx.run(pairTable));
}

export async function writePair(tx: Tx, id: string, filler = ""): Promise<string> {
  await tx.run(sql`insert into pair (id, half, filler) values (${id}, 1, ${filler})`);
  await tx.run(sql`insert into pair (id, half, filler) values (${id}, 2, ${filler})`);
  return id;
}

/** The ids of all pairs, after checking that none is a half. */
export async function readPairs(store: Store): Promise<string[]> {
  const rows = await store.readHeavy<{ id: string; halves: number }>(
    sql`select id, count(*) as halves from pair group by id order by id`,
  );
  assert.deepEqual(
    rows.filter((row) => row.halves !== 2),
    [],
    "a half unit was kept",
  );
  return rows.map((row) => row.id);
}

/** `numbered(3)` is 000, 001, 002: names that sort as they count. */
export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index).padStart(3, "0"));
}

/** The kind of a unit, for titles. */
export function unitOf(by: NonNullable<WriteOptions["by"]>): string {
  return { user: "a user's unit", engine: "an engine unit", shared: "a shared unit" }[by];
}
