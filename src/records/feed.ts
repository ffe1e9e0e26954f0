// What changed, commit by commit. Commits of a tenant are made one after the other and become visible in the order of their
// numbers, also on PostgreSQL, so whoever goes on after the last number it saw misses nothing.
import { checkCount } from "../core/count.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import { asText } from "../storage/word.ts";
import { keyOfRow } from "./entry.ts";
import { checkCommit, readHead } from "./moment.ts";
import type { RecordReader } from "./record-reader.ts";
import { checkDefinition, type AnyRecordType, type RelationKey } from "./relation.ts";
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
  /** What it was until then; null when there was nothing. */
  readonly before: Value | null;
};

export type ChangePage<Value = unknown> = {
  readonly items: readonly ChangeRecord<Value>[];
  /** The last commit that was looked at: go on from here. */
  readonly commit: number;
  /** Whether there is more already. */
  readonly more: boolean;
};

export type SinceOptions = {
  /** Only changes of this type. */
  readonly type?: AnyRecordType;
  /** About how many changes; commits are never cut. */
  readonly limit?: number;
};

type ChangeRow = {
  commit_id: number;
  committed_at: number;
  kind: ChangeKind;
  name: string;
  key: string;
  from_key: string | null;
  to_key: string | null;
  instance_key: string | null;
  revision: number;
  body: string | null;
  before: string | null;
};

export async function readSince<Value>(
  reader: RecordReader,
  commit: number,
  options: SinceOptions,
): Promise<ChangePage<Value>> {
  refuseUnknown(options, ["type", "limit"], "since");
  if (options.type !== undefined) checkDefinition(options.type, "type");
  const limit = checkCount(options.limit ?? limits.pageMax, "limit", 1, limits.bulkRowsMax);
  const head = (await readHead(reader)).commit ?? 0;
  checkCommit(commit, head, "since");
  const until = await lastWhole(reader, commit, limit);
  const items = until === commit ? [] : await readChanges<Value>(reader, commit, until, options.type?.name);
  return { items, commit: until, more: until < head };
}

/** The last commit up to which there are about `limit` changes; at least one commit is taken. */
async function lastWhole(reader: RecordReader, after: number, limit: number): Promise<number> {
  const rows = await reader.point<{ id: number; changes: number }>(sql`select id, changes from daybook_record_commit
    where tenant_id = ${reader.tenant} and id > ${after} order by id limit ${Math.min(limit, limits.pageMax)}`);
  let [last, changes] = [after, 0];
  for (const row of rows) {
    changes += row.changes;
    if (last > after && changes > limit) break;
    last = row.id;
  }
  return last;
}

/** The changes of the commits after `from` up to `to`, in the order in which they were made. */
export async function readChanges<Value>(
  reader: RecordReader,
  from: number,
  to: number,
  name?: string,
): Promise<ChangeRecord<Value>[]> {
  const only = name === undefined ? sql`` : sql`and record_type.name = ${name}`;
  // What a change replaced is the newest version that began before it: one seek, however many versions the key has.
  const rows = await reader.heavy<ChangeRow>(sql`
    select change.commit_id, made.committed_at, change.kind, record_type.name, change.key, change.revision,
      coalesce(now.from_key, past.from_key, before.from_key) as from_key,
      coalesce(now.to_key, past.to_key, before.to_key) as to_key,
      coalesce(now.instance_key, past.instance_key, before.instance_key) as instance_key,
      coalesce(now.body, past.body)${asText} as body, before.body${asText} as before
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
    where change.tenant_id = ${reader.tenant} and change.commit_id > ${from} and change.commit_id <= ${to} ${only}
    order by change.commit_id, change.position`);
  return rows.map((row) => ({
    commit: row.commit_id,
    at: row.committed_at,
    kind: row.kind,
    type: row.name,
    key: keyOfRow(row),
    revision: row.revision,
    value: row.body === null ? null : (JSON.parse(row.body) as Value),
    before: row.before === null ? null : (JSON.parse(row.before) as Value),
  }));
}
