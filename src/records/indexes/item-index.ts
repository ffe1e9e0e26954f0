// The index of the texts in an array. PostgreSQL has one for that; on SQLite it is a table that triggers maintain, whichever
// program writes. Its last part to be built proves that all of it was.
import { createHash } from "node:crypto";
import { rawSql, render, sql, type Dialect, type Sql } from "../../storage/sql.ts";
import type { Path } from "../define/field-index.ts";
import { fieldTerm } from "../query/term.ts";

export type Built = {
  readonly name: string;
  readonly table: "record" | "record_version" | "record_item" | "record_words";
  readonly texts: readonly string[];
  /** SQLite: triggers and indexes with this prefix belong to an older definition and are dropped first. */
  readonly instead?: { readonly prefix: string; readonly clear: string };
};

export function pathHash(path: Path): string {
  return createHash("sha256").update(JSON.stringify(path)).digest("hex").slice(0, 16);
}

export function itemIndex(dialect: Dialect, path: Path): Built {
  const hash = pathHash(path);
  const name = `record_items_${hash}`;
  if (dialect === "postgres") {
    const { json } = fieldTerm("postgres", { column: rawSql("body") }, path, true);
    const { text } = render(sql`using gin (${json} jsonb_path_ops)`, "postgres");
    return {
      name,
      table: "record",
      texts: [`create index concurrently if not exists ${name} on daybook_record ${text}`],
    };
  }
  const gone = `delete from daybook_record_item where path = '${hash}' and record_seq = old.seq`;
  const put = insertItems(path, hash, "new");
  const texts = [
    `create table if not exists daybook_record_item (tenant_id text not null, path text not null, type_seq integer not null,
      value text not null, record_seq integer not null,
      primary key (tenant_id, path, type_seq, value, record_seq)) strict, without rowid`,
    `create trigger if not exists ${name}_made after insert on daybook_record begin ${put}; end`,
    `create trigger if not exists ${name}_changed after update of body on daybook_record begin ${gone}; ${put}; end`,
    `create trigger if not exists ${name}_gone after delete on daybook_record begin ${gone}; end`,
    insertItems(path, hash, "record"),
    `create index if not exists ${name} on daybook_record_item (record_seq) where path = '${hash}'`,
  ];
  return { name, table: "record_item", texts };
}

/** Inserts the texts of one new row, or of all rows. */
function insertItems(path: Path, hash: string, row: "new" | "record"): string {
  const { type, raw } = fieldTerm("sqlite", { column: rawSql(`${row}.body`) }, path, true);
  const { text } = render(sql`json_each(case when ${type} = 'array' then ${raw} end)`, "sqlite");
  const from = row === "new" ? text : `daybook_record record, ${text}`;
  return `insert or ignore into daybook_record_item (tenant_id, path, type_seq, value, record_seq)
    select ${row}.tenant_id, '${hash}', ${row}.type_seq, item.value, ${row}.seq from ${from} as item where item.type = 'text'`;
}

/** Whether the array at an indexed path has this text. */
export function hasItem(
  dialect: Dialect,
  record: { readonly alias: Sql; readonly tenant: string; readonly typeSeq: number },
  path: Path,
  value: string,
): Sql {
  if (dialect === "sqlite") {
    return sql`${record.alias}.seq in (select record_seq from daybook_record_item where tenant_id = ${record.tenant}
      and path = ${pathHash(path)} and type_seq = ${record.typeSeq} and value = ${value})`;
  }
  const { json } = fieldTerm("postgres", { column: sql`${record.alias}.body` }, path, true);
  return sql`${json} @> ${JSON.stringify([value])}::text::jsonb`;
}
