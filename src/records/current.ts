// What is known of a key right now, inside a transaction that will write it.
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { asText, rowSet } from "../storage/word.ts";

/** A row of what is known. */
export type LiveRow = {
  readonly seq: number;
  readonly body: string;
  readonly revision: number;
  readonly from_commit: number;
};

/** `last`: the newest revision that the key ever had, so that one that is made again goes on counting. */
export type Current = { readonly live: LiveRow | undefined; readonly last: number };

type Found = LiveRow & { readonly live: number; readonly key: string };

export async function readCurrent(tx: Tx, typeSeq: number, key: string): Promise<Current> {
  const rows = await tx.all<Found>(sql`
    select 1 as live, seq, body${asText} as body, revision, from_commit from record
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key}
    union all select * from (select 0, seq, '', revision, from_commit from record_version
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key} order by from_commit desc limit 1) as past`);
  return toCurrent(rows);
}

/** The same for many keys at once. */
export async function readCurrents(tx: Tx, typeSeq: number, keys: readonly string[]): Promise<Map<string, Current>> {
  const asked = (): Sql =>
    sql`${rowSet(
      "asked",
      { key: "text" },
      keys.map((key) => ({ key })),
    )}`;
  const rows = await tx.all<Found>(sql`
    select asked.key, 1 as live, record.seq, record.body${asText} as body, record.revision, record.from_commit
      from ${asked()} join record
      on record.tenant_id = ${tx.tenant} and record.type_seq = ${typeSeq} and record.key = asked.key
    union all select asked.key, 0, max(past.seq), '', max(past.revision), 0 from ${asked()} join record_version as past
      on past.tenant_id = ${tx.tenant} and past.type_seq = ${typeSeq} and past.key = asked.key group by asked.key`);
  const found = Map.groupBy(rows, (row) => row.key);
  return new Map(keys.map((key) => [key, toCurrent(found.get(key) ?? [])]));
}

function toCurrent(rows: readonly Found[]): Current {
  const live = rows.find((row) => row.live === 1);
  return { live, last: Math.max(0, ...rows.map((row) => row.revision)) };
}
