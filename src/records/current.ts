// What is known of a key right now, inside a transaction that will write it.
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { asText, rowSet, seekEach } from "../storage/word.ts";

/** A row of what is known. */
export type LiveRow = {
  readonly seq: number;
  readonly body: string;
  readonly revision: number;
  readonly from_commit: number;
};

/** `last`: the newest revision that the key ever had, so that one that is made again goes on counting. */
export type Current = { readonly live: LiveRow | undefined; readonly last: number };

type Found = Omit<LiveRow, "revision"> & {
  readonly live: number;
  readonly key: string;
  /** Null where the key never had a version before the one it has now. */
  readonly revision: number | null;
};

export async function readCurrent(tx: Tx, typeSeq: number, key: string): Promise<Current> {
  const rows = await tx.all<Found>(sql`
    select 1 as live, seq, body${asText} as body, revision, from_commit from daybook_record
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key}
    union all select * from (select 0, seq, '', revision, from_commit from daybook_record_version
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key} order by from_commit desc limit 1) as past`);
  return toCurrent(rows);
}

/** The same for many keys at once, key by key: what a batch costs must not grow with what is known. */
export async function readCurrents(tx: Tx, typeSeq: number, keys: readonly string[]): Promise<Map<string, Current>> {
  const asked = (): Sql =>
    sql`${rowSet(
      "asked",
      { key: "text" },
      keys.map((key) => ({ key })),
    )}`;
  const mine = (table: string): Sql => sql`${rawSql(table)}.tenant_id = ${tx.tenant}
    and ${rawSql(table)}.type_seq = ${typeSeq} and ${rawSql(table)}.key = asked.key`;
  const rows = await tx.all<Found>(sql`
    select asked.key, 1 as live, record.seq, record.body${asText} as body, record.revision, record.from_commit
      from ${asked()} ${seekEach("record", mine("record"))}
    union all select asked.key, 0, 0, '', (select past.revision from daybook_record_version as past where ${mine("past")}
        order by past.from_commit desc limit 1), 0
      from ${asked()}`);
  const found = Map.groupBy(rows, (row) => row.key);
  return new Map(keys.map((key) => [key, toCurrent(found.get(key) ?? [])]));
}

function toCurrent(rows: readonly Found[]): Current {
  const live = rows.find((row): row is Found & LiveRow => row.live === 1);
  return { live, last: Math.max(0, ...rows.map((row) => row.revision ?? 0)) };
}
