// The records of a type at a moment, as tables to read: the live rows, the versions closed since, and what the transaction
// itself changed.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { anyOf, jsonOf, rowSet } from "../../storage/word.ts";
import type { AnyRecordType } from "../define/definition.ts";
import { samePath, type Index } from "../define/field-index.ts";
import type { TypeRow } from "../define/record-type.ts";
import { rowOfChange } from "../entry.ts";
import type { Moment } from "../moment.ts";
import type { RecordReader } from "../record-reader.ts";
import { compileCondition, type Scope } from "./compile.ts";
import type { Condition } from "./condition.ts";

/** One table to read, under an alias, and the condition that picks its rows. */
type Arm = { readonly table: Sql; readonly picks: Sql; readonly indexes: readonly Index[] };

/** The type that a question is about. Its row is known; its definition may be missing. */
export type Subject = {
  readonly row: TypeRow;
  readonly indexes: readonly Index[];
};

/** A type that the book was not opened with is read without its indexes, because they may not be built. */
export function subjectOf(reader: RecordReader, row: TypeRow, type: AnyRecordType | undefined): Subject {
  return { row, indexes: type !== undefined && reader.isBuilt(type) ? type.indexes : [] };
}

const columns = rawSql("key, from_key, to_key, instance_key, body, revision, from_commit, schema_version");

/** `from … where …`, with the records under the alias `r`. */
export function readFrom(
  reader: RecordReader,
  subject: Subject,
  moment: Moment,
  where: Condition,
  order: "ordered" | "unordered",
): Sql {
  const names = { next: 1 };
  const owner = order === "unordered" ? "implied" : isNarrow(subject.indexes, where) ? "unindexed" : "indexed";
  const arms = armsOf(reader, subject.row.seq, subject.indexes, moment, rawSql("r"), owner);
  const parts = arms.map(({ table, picks, indexes }) => {
    const scope = scopeOf(reader, { subject, moment, names, indexes, alias: rawSql("r") });
    return sql`from ${table} where ${picks} and ${compileCondition(scope, where)}`;
  });
  const [only, second] = parts;
  if (only !== undefined && second === undefined) return only;
  const selects = parts.map((part) => sql`select ${columns} ${part}`);
  return sql`from (${joinSql(selects, " union all ")}) as r where 1 = 1`;
}

type ScopeParts = {
  readonly subject: Subject;
  readonly moment: Moment;
  readonly names: Scope["names"];
  readonly indexes: readonly Index[];
  readonly alias: Sql;
};

/** What the places of conditions and orders mean for the records under the alias. */
export function scopeOf(reader: RecordReader, { subject, moment, names, indexes, alias }: ScopeParts): Scope {
  const { dialect } = reader;
  const { from_type_seq: from, to_type_seq: to } = subject.row;
  return {
    dialect,
    root: { column: sql`${alias}.body` },
    columns: alias,
    indexes,
    names,
    record: { alias, tenant: reader.tenant, typeSeq: subject.row.seq },
    endpoint:
      from === null || to === null
        ? null
        : (side, where) => {
            const end = rawSql(`end${names.next++}`);
            const seq = side === "from" ? from : to;
            const arms = armsOf(reader, seq, [], moment, end, "indexed");
            const key = sql`${end}.key = ${alias}.${rawSql(`${side}_key`)}`;
            const inner: Scope = {
              dialect,
              root: { column: sql`${end}.body` },
              columns: end,
              indexes: [],
              endpoint: null,
              record: null,
              names,
            };
            const each = arms.map(
              ({ table, picks }) => sql`exists (select 1 from ${table} where ${picks} and ${key} and ${where(inner)})`,
            );
            return sql`(${joinSql(each, " or ")})`;
          },
  };
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
  const rows = pending.flatMap((change) => {
    const row = rowOfChange(change);
    if (row === null) return [];
    const { from: from_key, to: to_key, instance: instance_key, schemaVersion: schema_version } = row;
    return [{ ...row, from_key, to_key, instance_key, schema_version }];
  });
  const own = sql`(select key, from_key, to_key, instance_key, ${jsonOf("body")} as body, revision,
    cast(null as bigint) as from_commit, schema_version from ${rowSet("own", ownColumns, rows)}) as ${alias}`;
  return [
    {
      table: sql`daybook_record as ${alias}`,
      picks: sql`${mine} and not (${alias}.key ${anyOf("text", keys)})`,
      indexes,
    },
    { table: own, picks: rawSql("1 = 1"), indexes: [] },
  ];
}

const ownColumns = {
  key: "text",
  from_key: "text",
  to_key: "text",
  instance_key: "text",
  body: "text",
  revision: "integer",
  schema_version: "integer",
} as const;

/** Whether the condition, as a whole, wants few values of an indexed field. */
function isNarrow(indexes: readonly Index[], where: Condition): boolean {
  if (where.op === "and") return where.of.some((each) => isNarrow(indexes, each));
  if (where.op === "any") return indexes.some((index) => index.each && samePath(index.path, where.at.path));
  if (where.op !== "eq" && where.op !== "in" && where.op !== "startsWith") return false;
  return where.at.side === "value" && indexes.some((index) => !index.each && samePath(index.path, where.at.path));
}
