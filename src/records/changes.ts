// What changed: commit by commit, or between two moments. A tenant's commits are made one after the other and become visible in the
// order of their numbers, on PostgreSQL too, so a reader that continues after the last number it saw misses nothing.
import { checkCount } from "../core/count.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkLimit, notACursor, readCursor, writeCursor, type Page, type PageOptions } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { makeEach } from "../storage/make-each.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Some } from "../storage/store.ts";
import { asText } from "../storage/word.ts";
import { checkCommit, momentOf, readCommit, readHead, type AsOf } from "./commit.ts";
import { checkDefinition, type AnyRecordType, type RelationKey } from "./define/definition.ts";
import { keyOfRow, parseDocument, type KeyRow } from "./entry.ts";
import type { RecordReader } from "./record-reader.ts";
import type { ChangeKind } from "./room.ts";

export type ChangeRecord<Value = unknown> = {
  readonly commit: number;
  readonly at: number;
  readonly kind: ChangeKind;
  readonly type: string;
  readonly key: string | RelationKey;
  readonly revision: number;
  /** Null for a deletion. */
  readonly value: Value | null;
  /** The document until then; null when there was none. */
  readonly before: Value | null;
};

export type ChangePage<Value = unknown> = {
  readonly items: readonly ChangeRecord<Value>[];
  /** The last commit that was read: continue from here. */
  readonly commit: number;
  /** Whether more commits are there already. */
  readonly more: boolean;
};

export type SinceOptions = {
  /** Only changes of this type. */
  readonly type?: AnyRecordType;
  /** About how many changes; commits are never cut. */
  readonly limit?: number;
};

type ChangeRow = Pick<ChangeRecord, "commit" | "at" | "kind" | "type" | "revision"> &
  KeyRow & { readonly position: number; readonly value: string | null; readonly before: string | null };

export async function readSince<Value>(
  reader: RecordReader,
  commit: number,
  options: SinceOptions,
): Promise<ChangePage<Value>> {
  refuseUnknown(options, ["type", "limit"], "since");
  const only = ofType(options.type);
  const limit = checkCount(options.limit ?? limits.pageMax, "limit", 1, limits.bulkRowsMax);
  const head = (await readHead(reader)).commit ?? 0;
  checkCommit(commit, head, "since");
  const until = await lastWhole(reader, commit, head, limit);
  if (until === commit) return { items: [], commit, more: until < head };
  const { items, commit: last } = await readChanges<Value>(reader, commit, until, only);
  return { items, commit: last, more: last < head };
}

function ofType(type: AnyRecordType | undefined): Sql {
  return type === undefined ? sql`` : sql`and record_type.name = ${checkDefinition(type, "type").name}`;
}

/** The last commit up to `head` that keeps the page at about `limit` changes; at least one commit is taken. */
async function lastWhole(reader: RecordReader, after: number, head: number, limit: number): Promise<number> {
  const rows = await reader.point<{ id: number; changes: number }>(sql`select id, changes from daybook_record_commit
    where tenant_id = ${reader.tenant} and id > ${after} and id <= ${head} order by id limit ${Math.min(limit, limits.pageMax)}`);
  let [last, changes] = [after, 0];
  for (const row of rows) {
    changes += row.changes;
    if (last > after && changes > limit) break;
    last = row.id;
  }
  return last;
}

/** The changes of the commits after `from` up to `to`, in the order in which they were made. When they are large, it ends earlier,
 *  with a whole commit. */
async function readChanges<Value>(
  reader: RecordReader,
  from: number,
  to: number,
  only: Sql,
): Promise<{ items: ChangeRecord<Value>[]; commit: number }> {
  const found: ChangeRow[] = [];
  const changesOf = (rows: readonly ChangeRow[]): Promise<ChangeRecord<Value>[]> =>
    makeEach(rows, (row) => toChange<Value>(row), reader.turn);
  for (;;) {
    const { rows, more } = await readChangesPage(reader, from, to, only, found.at(-1));
    for (const row of rows) found.push(row);
    const last = found.at(-1);
    if (!more || last === undefined) return { items: await changesOf(found), commit: to };
    const whole = found.filter((row) => row.commit < last.commit);
    if (whole.length > 0) return { items: await changesOf(whole), commit: last.commit - 1 };
  }
}

async function readChangesPage(
  reader: RecordReader,
  from: number,
  to: number,
  only: Sql,
  after: Pick<ChangeRow, "commit" | "position"> | undefined,
  most: Sql = sql``,
): Promise<Some<ChangeRow>> {
  const beyond =
    after === undefined ? sql`` : sql`and (change.commit_id, change.position) > (${after.commit}, ${after.position})`;
  // A change replaced the newest version that began before it: one seek, however many versions the key has.
  return reader.page<ChangeRow>(sql`
    select change.commit_id as "commit", change.position, made.committed_at as at, change.kind, record_type.name as type,
      change.key, change.revision, coalesce(now.from_key, past.from_key, before.from_key) as "from",
      coalesce(now.to_key, past.to_key, before.to_key) as "to",
      coalesce(now.instance_key, past.instance_key, before.instance_key) as instance,
      coalesce(now.body, past.body)${asText} as value, before.body${asText} as before
    from daybook_record_change as change
    join daybook_record_commit as made on made.tenant_id = change.tenant_id and made.id = change.commit_id
    join daybook_record_type record_type on record_type.seq = change.type_seq
    left join daybook_record as now on now.tenant_id = change.tenant_id and now.type_seq = change.type_seq
      and now.key = change.key and now.from_commit = change.commit_id
    left join daybook_record_version as past on past.tenant_id = change.tenant_id and past.type_seq = change.type_seq
      and past.key = change.key and past.from_commit = change.commit_id
    left join daybook_record_version as before on before.tenant_id = change.tenant_id and before.type_seq = change.type_seq
      and before.key = change.key and before.to_commit = change.commit_id
      and before.from_commit = (select max(from_commit) from daybook_record_version as older where older.tenant_id = change.tenant_id
        and older.type_seq = change.type_seq and older.key = change.key and older.from_commit < change.commit_id)
    where change.tenant_id = ${reader.tenant} and change.commit_id > ${from} and change.commit_id <= ${to} ${only} ${beyond}
    order by change.commit_id, change.position ${most}`);
}

export type CommitChangesOptions = PageOptions & {
  /** Only changes of this type. */
  readonly type?: AnyRecordType;
};

/** What one commit changed, in the order in which it was written. */
export async function readCommitChanges<Value>(
  reader: RecordReader,
  commit: number,
  options: CommitChangesOptions,
): Promise<Page<ChangeRecord<Value>>> {
  refuseUnknown(options, ["type", "limit", "after"], "the changes of a commit");
  const limit = checkLimit(options.limit);
  await readCommit(reader, commit);
  const after = options.after === undefined ? undefined : { commit, position: readPosition(options.after) };
  const only = ofType(options.type);
  const { rows, more } = await readChangesPage(reader, commit - 1, commit, only, after, sql`limit ${limit + 1}`);
  const read = rows.slice(0, limit);
  const items = await makeEach(read, (row) => toChange<Value>(row), reader.turn);
  const last = read.at(-1);
  return { items, next: (more || rows.length > limit) && last !== undefined ? writeCursor([last.position]) : null };
}

function readPosition(cursor: string): number {
  const [position] = readCursor(cursor);
  if (typeof position === "number" && Number.isSafeInteger(position) && position >= 0) return position;
  throw notACursor(cursor);
}

function toChange<Value>(row: ChangeRow): ChangeRecord<Value> {
  const { commit, at, kind, type, revision } = row;
  const [value, before] = [parseDocument<Value>(row.value), parseDocument<Value>(row.before)];
  return { commit, at, kind, type, key: keyOfRow(row), revision, value, before };
}

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

/** For each record that changed between two moments, what it was and what it became. A record that was changed back is no
 *  difference. */
export async function readDiff<Value>(
  reader: RecordReader,
  from: AsOf,
  to: AsOf,
  options: DiffOptions,
): Promise<DiffPage<Value>> {
  refuseUnknown(options, ["type", "limit", "after"], "diff");
  const only = ofType(options.type);
  const limit = checkLimit(options.limit);
  const [a, b] = [(await momentOf(reader, from)) ?? 0, (await momentOf(reader, to)) ?? 0];
  const items: Difference<Value>[] = [];
  let after = options.after === undefined ? undefined : readSpot(options.after);
  // Records that were changed back are left out, so a page may take several reads.
  for (;;) {
    const { rows, more: cut } = await reader.page<DiffRow>(selectDiff(reader.tenant, a, b, only, after, limit + 1));
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

function selectDiff(tenant: string, a: number, b: number, only: Sql, after: Spot | undefined, count: number): Sql {
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
