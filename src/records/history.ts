// Everything that ever happened to one key, the oldest first.
import { checkCount } from "../core/count.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import { asText } from "../storage/word.ts";
import { recordKey, type RecordKey } from "./record-key.ts";
import type { RecordReader } from "./record-reader.ts";
import type { AnyRecordType, RelationKey } from "./relation.ts";
import type { ChangeKind } from "./room.ts";

export type Version<Value = unknown> = {
  readonly kind: ChangeKind;
  readonly commit: number;
  readonly at: number;
  readonly actor: string | null;
  readonly reason: string | null;
  /** Of a deletion, the revision that it ended. */
  readonly revision: number;
  /** Null for a deletion. */
  readonly value: Value | null;
  readonly schemaVersion: number;
};

export type HistoryPage<Value = unknown> = {
  readonly items: readonly Version<Value>[];
  /** Where to go on: give it as `after`. */
  readonly next: number | null;
};
export type HistoryOptions = { readonly limit?: number; readonly after?: number };

type VersionRow = {
  commit_id: number;
  committed_at: number;
  actor: string | null;
  reason: string | null;
  revision: number;
  body: string | null;
  schema_version: number;
  /** When the version before it ended; null when there is none. */
  previous_end: number | null;
};

export async function readHistory<Value>(
  reader: RecordReader,
  type: AnyRecordType,
  key: string | RelationKey,
  options: HistoryOptions,
): Promise<HistoryPage<Value>> {
  refuseUnknown(options, ["limit", "after"], "history");
  const limit = checkCount(options.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const after = checkCount(options.after ?? 0, "after", 0, Number.MAX_SAFE_INTEGER);
  const rows = await readVersions(reader, type.name, recordKey(type, key), after, limit + 1);
  const items = rows.slice(0, limit).map((row) => toVersion<Value>(row));
  return { items, next: rows.length > limit ? (items.at(-1)?.commit ?? null) : null };
}

async function readVersions(
  reader: RecordReader,
  name: string,
  { key }: RecordKey,
  after: number,
  count: number,
): Promise<VersionRow[]> {
  const type = await reader.typeOf(name);
  if (type === undefined) return [];
  const mine = sql`tenant_id = ${reader.tenant} and type_seq = ${type.seq} and key = ${key}`;
  return reader.heavy<VersionRow>(sql`
    select event.commit_id, made.committed_at, made.actor, made.reason, revision, body, schema_version,
      (select to_commit from record_version where ${mine} and from_commit < event.commit_id
        order by from_commit desc limit 1) as previous_end
    from (select from_commit as commit_id, revision, body${asText} as body, schema_version from record where ${mine}
      union all select from_commit, revision, body${asText}, schema_version from record_version where ${mine}
      union all select to_commit, revision, null, schema_version from record_version where ${mine} and ended = 'deleted'
    ) as event join record_commit as made on made.tenant_id = ${reader.tenant} and made.id = event.commit_id
    where event.commit_id > ${after} order by event.commit_id limit ${count}`);
}

function toVersion<Value>(row: VersionRow): Version<Value> {
  const kind = row.body === null ? "deleted" : row.previous_end === row.commit_id ? "updated" : "created";
  return {
    kind,
    commit: row.commit_id,
    at: row.committed_at,
    actor: row.actor,
    reason: row.reason,
    revision: row.revision,
    value: row.body === null ? null : (JSON.parse(row.body) as Value),
    schemaVersion: row.schema_version,
  };
}
