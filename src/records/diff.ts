// What is different between two commits: for each record that changed in between, what it was and what it became. What was
// changed and changed back is no difference.
import { checkCount } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import { asText } from "../storage/word.ts";
import { keyOfRow } from "./entry.ts";
import { momentOf, type AsOf } from "./moment.ts";
import type { RecordReader } from "./record-reader.ts";
import { checkDefinition, type AnyRecordType, type RelationKey } from "./define/definition.ts";
import type { ChangeKind } from "./room.ts";

export type Difference<Value = unknown> = {
  readonly type: string;
  readonly key: string | RelationKey;
  readonly kind: ChangeKind;
  readonly before: Value | null;
  readonly after: Value | null;
};

export type DiffPage<Value = unknown> = { readonly items: readonly Difference<Value>[]; readonly next: string | null };
export type DiffOptions = { readonly type?: AnyRecordType; readonly limit?: number; readonly after?: string };

type DiffRow = {
  type_seq: number;
  name: string;
  key: string;
  from_key: string | null;
  to_key: string | null;
  instance_key: string | null;
  before: string | null;
  after: string | null;
};

export async function readDiff<Value>(
  reader: RecordReader,
  from: AsOf,
  to: AsOf,
  options: DiffOptions,
): Promise<DiffPage<Value>> {
  refuseUnknown(options, ["type", "limit", "after"], "diff");
  if (options.type !== undefined) checkDefinition(options.type, "type");
  const limit = checkCount(options.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const [a, b] = [(await momentOf(reader, from)) ?? 0, (await momentOf(reader, to)) ?? 0];
  const items: Difference<Value>[] = [];
  let after = options.after === undefined ? undefined : readPlace(options.after);
  // Records that are the same again are left out, so a page may take several looks.
  for (;;) {
    const { rows, more: cut } = await reader.page<DiffRow>(
      selectDiff(reader.tenant, a, b, options.type?.name, after, limit + 1),
    );
    for (const [index, row] of rows.entries()) {
      if (index === limit) break;
      const difference = toDifference<Value>(row);
      if (difference !== undefined) items.push(difference);
      after = { type: row.type_seq, key: row.key };
      if (items.length < limit) continue;
      const more = cut || index + 1 < rows.length;
      return { items, next: more ? writePlace(after) : null };
    }
    if (cut && items.length > 0 && after !== undefined) return { items, next: writePlace(after) };
    if (rows.length <= limit && !cut) return { items, next: null };
  }
}

type Where = { readonly type: number; readonly key: string };

function selectDiff(
  tenant: string,
  a: number,
  b: number,
  name: string | undefined,
  after: Where | undefined,
  count: number,
): Sql {
  const only = name === undefined ? sql`` : sql`and record_type.name = ${name}`;
  const beyond = after === undefined ? sql`` : sql`where (type_seq, key) > (${after.type}, ${after.key})`;
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  // The version that held at a commit is the newest that had begun by then: one seek, however many there are.
  const heldAt = (version: string, commit: number): Sql => sql`${rawSql(version)}.tenant_id = changed.tenant_id
      and ${rawSql(version)}.type_seq = changed.type_seq and ${rawSql(version)}.key = changed.key
      and ${rawSql(version)}.to_commit > ${commit} and ${rawSql(version)}.from_commit = (
        select max(from_commit) from daybook_record_version as older where older.tenant_id = changed.tenant_id
          and older.type_seq = changed.type_seq and older.key = changed.key and older.from_commit <= ${commit})`;
  return sql`
    select changed.type_seq, changed.name, changed.key,
      coalesce(now.from_key, va.from_key, vb.from_key) as from_key, coalesce(now.to_key, va.to_key, vb.to_key) as to_key,
      coalesce(now.instance_key, va.instance_key, vb.instance_key) as instance_key,
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
  const [before, after] = [parse<Value>(row.before), parse<Value>(row.after)];
  if (before === null && after === null) return undefined;
  if (before !== null && after !== null && toJson(before) === toJson(after)) return undefined;
  const kind = before === null ? "created" : after === null ? "deleted" : "updated";
  return { type: row.name, key: keyOfRow(row), kind, before, after };
}

function parse<Value>(body: string | null): Value | null {
  return body === null ? null : (JSON.parse(body) as Value);
}

function writePlace({ type, key }: Where): string {
  return Buffer.from(JSON.stringify([type, key])).toString("base64url");
}

function readPlace(text: string): Where {
  try {
    const [type, key] = JSON.parse(Buffer.from(text, "base64url").toString()) as unknown[];
    if (typeof type === "number" && typeof key === "string") return { type, key };
  } catch {
    // Told below, like everything else that is none.
  }
  throw invalid(`${JSON.stringify(String(text).slice(0, 60))} is not a cursor: give "next" of the page before`);
}
