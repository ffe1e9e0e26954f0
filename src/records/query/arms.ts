// The tables that hold the records of a type at a moment: the live rows, the versions closed since, and what the transaction itself
// changed.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { anyOf, jsonOf, rowSet } from "../../storage/word.ts";
import type { Index } from "../define/definition.ts";
import type { Moment } from "../commit.ts";
import type { End } from "./condition.ts";
import type { RecordReader } from "../record-reader.ts";
import { rowColumns, toRow } from "../write/record-unit.ts";

/** One table to read, under an alias, and the condition that picks its rows. */
export type Arm = { readonly table: Sql; readonly alias: Sql; readonly picks: Sql; readonly indexes: readonly Index[] };

/** A type as the book knows it: its number, the indexes that it may name, and the entities that a relation connects. */
export type Sort = {
  readonly seq: number;
  readonly indexes: readonly Index[];
  readonly ends: { readonly from: Sort; readonly to: Sort } | null;
};

/** How the statement names the tenant. SQLite without statistics takes the index that saves a sort; `unindexed` keeps it from
 *  that index. A type belongs to one tenant, so without an order its number is enough (`implied`). */
export type Owner = "indexed" | "unindexed" | "implied";

/** Whether one table holds all records of the type. */
export function isLive(reader: RecordReader, moment: Moment, { seq }: Sort): boolean {
  return moment === null && !reader.pending().some((change) => change.row.seq === seq);
}

/** `ends`: the types of the ends are named, with which the indexes on relations begin. `near`: it is read by the key of this end. SQLite is
 *  told the index then: by statistics of a time when there were few relations it would read them all for each entity. */
export function armsOf(
  reader: RecordReader,
  sort: Sort,
  moment: Moment,
  alias: Sql,
  { owner = "indexed", near, ends = [] }: { owner?: Owner; near?: End; ends?: readonly End[] } = {},
): Arm[] {
  const { seq, indexes } = sort;
  const isSqlite = reader.dialect === "sqlite";
  const types = endTypes(sort, alias, near === undefined ? ends : [near]);
  const by = (name: string): Sql => (isSqlite && near !== undefined ? rawSql(`indexed by ${name}_${near}`) : sql``);
  const plus = owner === "unindexed" && isSqlite ? rawSql("+") : sql``;
  const mine =
    owner === "implied" && moment === null
      ? sql`${alias}.type_seq = ${seq} ${types}`
      : sql`${plus}${alias}.tenant_id = ${reader.tenant} and ${alias}.type_seq = ${seq} ${types}`;
  const live = sql`daybook_record as ${alias} ${by("relations")}`;
  if (moment !== null) {
    return [
      { table: live, alias, picks: sql`${mine} and ${alias}.from_commit <= ${moment}`, indexes },
      {
        table: sql`daybook_record_version as ${alias} ${by("versions")}`,
        alias,
        picks: sql`${mine} and ${alias}.to_commit > ${moment} and ${alias}.from_commit <= ${moment}`,
        indexes: indexes.filter((index) => index.temporal),
      },
    ];
  }
  if (isLive(reader, moment, sort)) return [{ table: live, alias, picks: mine, indexes }];
  const { unchanged, own } = ownRows(reader, seq, alias);
  return [
    { table: live, alias, picks: sql`${mine} and ${unchanged(alias)}`, indexes },
    { table: own, alias, picks: rawSql("1 = 1"), indexes: [] },
  ];
}

/** The one record of this key, in each table that may hold it; at most one of them does. Each table gets an alias of its own. `joined`:
 *  the tables are joined one after the other, so the second is only looked at for what is not in the first. */
export function armsOfOne(
  reader: RecordReader,
  sort: Sort,
  moment: Moment,
  key: Sql,
  { nextAlias, joined }: { readonly nextAlias: () => Sql; readonly joined: boolean },
): Arm[] {
  const { tenant, dialect } = reader;
  const at = (table: Sql, of: Sql): Sql =>
    sql`${table}.tenant_id = ${tenant} and ${table}.type_seq = ${sort.seq} and ${table}.key = ${of}`;
  const alias = nextAlias();
  const live = { table: sql`daybook_record as ${alias}`, alias, indexes: sort.indexes };
  if (moment === null && isLive(reader, moment, sort)) return [{ ...live, picks: at(alias, key) }];
  const other = nextAlias();
  if (moment === null) {
    const { unchanged, own } = ownRows(reader, sort.seq, other);
    return [
      { ...live, picks: sql`${at(alias, key)} and ${unchanged(alias)}` },
      { table: own, alias: other, picks: sql`${other}.key = ${key}`, indexes: [] },
    ];
  }
  // SQLite seeks the newest version that had begun by then, however many versions the record has. PostgreSQL chooses between a seek
  // and one pass over all that was closed since.
  const begun = rawSql("begun");
  const missing = joined ? sql`case when ${alias}.key is null then ${key} end` : key;
  const from =
    dialect === "sqlite"
      ? sql`= (select max(begun.from_commit) from daybook_record_version as begun
          where ${at(begun, missing)} and begun.from_commit <= ${moment})`
      : sql`<= ${moment}`;
  return [
    { ...live, picks: sql`${at(alias, key)} and ${alias}.from_commit <= ${moment}` },
    {
      table: sql`daybook_record_version as ${other}`,
      alias: other,
      picks: sql`${at(other, key)} and ${other}.from_commit ${from} and ${other}.to_commit > ${moment}`,
      indexes: sort.indexes.filter((index) => index.temporal),
    },
  ];
}

/** What the transaction itself wrote of a type, as a table, and the condition on rows that it left alone. */
function ownRows(reader: RecordReader, seq: number, alias: Sql): { unchanged: (live: Sql) => Sql; own: Sql } {
  const pending = reader.pending().filter((change) => change.row.seq === seq);
  const rows = pending.filter(({ body }) => body !== null).map(toRow);
  const keys = pending.map((change) => change.key);
  return {
    unchanged: (live) => sql`not (${live}.key ${anyOf("text", keys)})`,
    own: sql`(select key, from_key, to_key, instance_key, ${jsonOf("body")} as body, revision,
      cast(null as bigint) as from_commit, schema_version from ${rowSet("own", rowColumns, rows)}) as ${alias}`,
  };
}

/** The types of the ends of a relation, as conditions. */
export function endTypes({ ends }: Sort, alias: Sql, sides: readonly End[]): Sql {
  if (ends === null) return sql``;
  return joinSql(sides.map((side) => sql`and ${alias}.${rawSql(`${side}_type_seq`)} = ${ends[side].seq}`));
}
