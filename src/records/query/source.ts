// The records of a type at a moment, as tables to read: the live rows, the versions closed since, and what the transaction
// itself changed.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { anyOf, jsonOf, rowSet } from "../../storage/word.ts";
import { samePath, type Index } from "../define/definition.ts";
import type { TypeRow } from "../define/record-type.ts";
import type { Moment } from "../commit.ts";
import type { RecordReader } from "../record-reader.ts";
import { rowColumns, toRow } from "../write/record-unit.ts";
import { compileCondition, type Scope } from "./compile.ts";
import type { Condition } from "./condition.ts";

/** One table to read, under an alias, and the condition that picks its rows. */
type Arm = { readonly table: Sql; readonly picks: Sql; readonly indexes: readonly Index[] };

const columns = rawSql("key, from_key, to_key, instance_key, body, revision, from_commit, schema_version");

/** `from … where …`, with the records under the alias `r`. */
export function readFrom(
  reader: RecordReader,
  row: TypeRow,
  indexes: readonly Index[],
  moment: Moment,
  where: Condition,
  order: "ordered" | "unordered",
): Sql {
  const names = { next: 1 };
  const owner = order === "unordered" ? "implied" : isNarrow(indexes, where) ? "unindexed" : "indexed";
  const parts = armsOf(reader, row.seq, indexes, moment, rawSql("r"), owner).map((arm) => {
    const scope = scopeOf(reader, row, moment, arm.indexes, names);
    return sql`from ${arm.table} where ${arm.picks} and ${compileCondition(scope, where)}`;
  });
  const [only, second] = parts;
  if (only !== undefined && second === undefined) return only;
  const selects = parts.map((part) => sql`select ${columns} ${part}`);
  return sql`from (${joinSql(selects, " union all ")}) as r where 1 = 1`;
}

/** What the places of conditions and orders mean for the records under the alias `r`. */
export function scopeOf(
  reader: RecordReader,
  row: TypeRow,
  moment: Moment,
  indexes: readonly Index[],
  names: Scope["names"],
): Scope {
  const { dialect, tenant } = reader;
  const scopeUnder = (record: Sql, typeSeq: number): Scope => ({
    dialect,
    tenant,
    typeSeq,
    root: { column: sql`${record}.body` },
    record,
    indexes: [],
    endpoint: null,
    names,
  });
  const scope = scopeUnder(rawSql("r"), row.seq);
  const { from_type_seq: from, to_type_seq: to } = row;
  if (from === null || to === null) return { ...scope, indexes };
  const endpoint: Scope["endpoint"] = (side, where) => {
    const end = rawSql(`end${names.next++}`);
    const seq = side === "from" ? from : to;
    const key = sql`${end}.key = r.${rawSql(`${side}_key`)}`;
    const each = armsOf(reader, seq, [], moment, end, "indexed").map(
      ({ table, picks }) =>
        sql`exists (select 1 from ${table} where ${picks} and ${key} and ${where(scopeUnder(end, seq))})`,
    );
    return sql`(${joinSql(each, " or ")})`;
  };
  return { ...scope, indexes, endpoint };
}

/** How the statement names the tenant. SQLite without statistics takes the index that saves a sort; `unindexed` keeps it from
 *  that index. A type belongs to one tenant, so without an order its number is enough (`implied`). */
type Owner = "indexed" | "unindexed" | "implied";

function armsOf(
  reader: RecordReader,
  seq: number,
  indexes: readonly Index[],
  moment: Moment,
  alias: Sql,
  owner: Owner,
): Arm[] {
  const plus = owner === "unindexed" && reader.dialect === "sqlite" ? rawSql("+") : sql``;
  const mine =
    owner === "implied" && moment === null
      ? sql`${alias}.type_seq = ${seq}`
      : sql`${plus}${alias}.tenant_id = ${reader.tenant} and ${alias}.type_seq = ${seq}`;
  if (moment !== null) {
    return [
      { table: sql`daybook_record as ${alias}`, picks: sql`${mine} and ${alias}.from_commit <= ${moment}`, indexes },
      {
        table: sql`daybook_record_version as ${alias}`,
        picks: sql`${mine} and ${alias}.to_commit > ${moment} and ${alias}.from_commit <= ${moment}`,
        indexes: indexes.filter((index) => index.temporal),
      },
    ];
  }
  const pending = reader.pending().filter((change) => change.row.seq === seq);
  if (pending.length === 0) return [{ table: sql`daybook_record as ${alias}`, picks: mine, indexes }];
  const keys = pending.map((change) => change.key);
  const rows = pending.filter(({ body }) => body !== null).map(toRow);
  const own = sql`(select key, from_key, to_key, instance_key, ${jsonOf("body")} as body, revision,
    cast(null as bigint) as from_commit, schema_version from ${rowSet("own", rowColumns, rows)}) as ${alias}`;
  return [
    {
      table: sql`daybook_record as ${alias}`,
      picks: sql`${mine} and not (${alias}.key ${anyOf("text", keys)})`,
      indexes,
    },
    { table: own, picks: rawSql("1 = 1"), indexes: [] },
  ];
}

/** Whether the condition, as a whole, wants few values of an indexed field. */
function isNarrow(indexes: readonly Index[], where: Condition): boolean {
  if (where.op === "and") return where.of.some((each) => isNarrow(indexes, each));
  if (where.op === "any") return indexes.some((index) => index.each && samePath(index.path, where.at.path));
  if (where.op !== "eq" && where.op !== "in" && where.op !== "startsWith") return false;
  return where.at.side === "value" && indexes.some((index) => !index.each && samePath(index.path, where.at.path));
}
