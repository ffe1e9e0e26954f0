// What is different between two commits: for each record that changed in between, what it was and what it became. A record
// that was changed back is no difference.
import { toJson } from "../core/json.ts";
import { checkLimit, notACursor, readCursor, writeCursor, type Page } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { makeEach } from "../storage/make-each.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import { asText } from "../storage/word.ts";
import { checkDefinition, type AnyRecordType, type RelationKey } from "./define/definition.ts";
import { keyOfRow, parseDocument, type KeyRow } from "./entry.ts";
import { momentOf, type AsOf } from "./moment.ts";
import type { RecordReader } from "./record-reader.ts";
import type { ChangeKind } from "./room.ts";

export type Difference<Value = unknown> = {
  readonly type: string;
  readonly key: string | RelationKey;
  readonly kind: ChangeKind;
  readonly before: Value | null;
  readonly after: Value | null;
};

export type DiffPage<Value = unknown> = Page<Difference<Value>>;
export type DiffOptions = { readonly type?: AnyRecordType; readonly limit?: number; readonly after?: string };

type DiffRow = KeyRow & {
  readonly seq: number;
  readonly type: string;
  readonly before: string | null;
  readonly after: string | null;
};

export async function readDiff<Value>(
  reader: RecordReader,
  from: AsOf,
  to: AsOf,
  options: DiffOptions,
): Promise<DiffPage<Value>> {
  refuseUnknown(options, ["type", "limit", "after"], "diff");
  if (options.type !== undefined) checkDefinition(options.type, "type");
  const limit = checkLimit(options.limit);
  const [a, b] = [(await momentOf(reader, from)) ?? 0, (await momentOf(reader, to)) ?? 0];
  const items: Difference<Value>[] = [];
  let after = options.after === undefined ? undefined : readSpot(options.after);
  // Records that were changed back are left out, so a page may take several reads.
  for (;;) {
    const { rows, more: cut } = await reader.page<DiffRow>(
      selectDiff(reader.tenant, a, b, options.type?.name, after, limit + 1),
    );
    const read = rows.slice(0, limit);
    const differences = await makeEach(read, (row) => toDifference<Value>(row), reader.turn);
    for (const [index, row] of read.entries()) {
      const difference = differences[index];
      if (difference !== undefined) items.push(difference);
      after = { seq: row.seq, key: row.key };
      if (items.length < limit) continue;
      const more = cut || index + 1 < rows.length;
      return { items, next: more ? writeCursor([after.seq, after.key]) : null };
    }
    if (cut && items.length > 0 && after !== undefined) return { items, next: writeCursor([after.seq, after.key]) };
    if (rows.length <= limit && !cut) return { items, next: null };
  }
}

/** The record after which the next page begins: the number of its type, and its key. */
type Spot = { readonly seq: number; readonly key: string };

function readSpot(text: string): Spot {
  const [seq, key] = readCursor(text);
  if (typeof seq === "number" && typeof key === "string") return { seq, key };
  throw notACursor(text);
}

function selectDiff(
  tenant: string,
  a: number,
  b: number,
  name: string | undefined,
  after: Spot | undefined,
  count: number,
): Sql {
  const only = name === undefined ? sql`` : sql`and record_type.name = ${name}`;
  const beyond = after === undefined ? sql`` : sql`where (type_seq, key) > (${after.seq}, ${after.key})`;
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  // The version that held at a commit is the newest that had begun by then: one seek, however many versions there are.
  const heldAt = (version: string, commit: number): Sql => sql`${rawSql(version)}.tenant_id = changed.tenant_id
      and ${rawSql(version)}.type_seq = changed.type_seq and ${rawSql(version)}.key = changed.key
      and ${rawSql(version)}.to_commit > ${commit} and ${rawSql(version)}.from_commit = (
        select max(from_commit) from daybook_record_version as older where older.tenant_id = changed.tenant_id
          and older.type_seq = changed.type_seq and older.key = changed.key and older.from_commit <= ${commit})`;
  return sql`
    select changed.type_seq as seq, changed.name as type, changed.key,
      coalesce(now.from_key, va.from_key, vb.from_key) as "from", coalesce(now.to_key, va.to_key, vb.to_key) as "to",
      coalesce(now.instance_key, va.instance_key, vb.instance_key) as instance,
      coalesce(case when now.from_commit <= ${a} then now.body end, va.body)${asText} as before,
      coalesce(case when now.from_commit <= ${b} then now.body end, vb.body)${asText} as after
    from (select * from (select distinct change.tenant_id, change.type_seq, record_type.name, change.key
        from daybook_record_change as change join daybook_record_type record_type on record_type.seq = change.type_seq
        where change.tenant_id = ${tenant} and change.commit_id > ${low} and change.commit_id <= ${high} ${only}) as all_changed
      ${beyond} order by type_seq, key limit ${count}) as changed
    left join daybook_record as now on now.tenant_id = changed.tenant_id and now.type_seq = changed.type_seq and now.key = changed.key
    left join daybook_record_version as va on ${heldAt("va", a)}
    left join daybook_record_version as vb on ${heldAt("vb", b)}
    order by changed.type_seq, changed.key`;
}

function toDifference<Value>(row: DiffRow): Difference<Value> | undefined {
  const [before, after] = [parseDocument<Value>(row.before), parseDocument<Value>(row.after)];
  if (before === null && after === null) return undefined;
  if (before !== null && after !== null && toJson(before) === toJson(after)) return undefined;
  const kind = before === null ? "created" : after === null ? "deleted" : "updated";
  return { type: row.type, key: keyOfRow(row), kind, before, after };
}
