// Everything that ever happened to one key, the oldest first, and which commit last set each of its fields.
import { checkCount } from "../core/count.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkLimit } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { makeEach } from "../storage/make-each.ts";
import { sql } from "../storage/sql.ts";
import type { Some } from "../storage/store.ts";
import { asText } from "../storage/word.ts";
import type { AnyRecordType, RelationKey } from "./define/definition.ts";
import { noRecord, recordKey, type RecordKey } from "./define/record-key.ts";
import type { RecordReader } from "./record-reader.ts";
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
  /** Give it as `after` to continue. */
  readonly next: number | null;
};
export type HistoryOptions = { readonly limit?: number; readonly after?: number };

export async function readHistory<Value>(
  reader: RecordReader,
  type: AnyRecordType,
  key: string | RelationKey,
  options: HistoryOptions,
): Promise<HistoryPage<Value>> {
  refuseUnknown(options, ["limit", "after"], "history");
  const limit = checkLimit(options.limit);
  const after = checkCount(options.after ?? 0, "after", 0, Number.MAX_SAFE_INTEGER);
  const { rows, more } = await readVersions(reader, type.name, recordKey(type, key), after, limit + 1);
  const versions = await makeEach(rows, (row, index) => toVersions<Value>(row, rows[index - 1]), reader.turn);
  const end = reader.unfinished() ?? Number.MAX_SAFE_INTEGER;
  const found = versions.flat().filter(({ commit }) => commit > after && commit < end);
  const items = found.slice(0, limit);
  return { items, next: found.length > limit || more ? (items.at(-1)?.commit ?? null) : null };
}

type VersionRow = Omit<Version, "kind" | "value"> & {
  readonly body: string;
  /** Null for the live row. */
  readonly until: number | null;
  /** Of the commit that deleted it; null when there is none. */
  readonly deletedAt: number | null;
  readonly deletedBy: string | null;
  readonly deletedFor: string | null;
};

/** The versions that hold the next `count` things that happened. A version says when it was made, and perhaps when it was deleted,
 *  so the first one is that which held at `after`. */
async function readVersions(
  reader: RecordReader,
  name: string,
  { key }: RecordKey,
  after: number,
  count: number,
): Promise<Some<VersionRow>> {
  const type = await reader.typeOf(name);
  if (type === undefined) return { rows: [], more: false };
  const mine = sql`tenant_id = ${reader.tenant} and type_seq = ${type.seq} and key = ${key}`;
  return reader.page<VersionRow>(sql`
    select version.*, made.committed_at as at, made.actor, made.reason,
      gone.committed_at as "deletedAt", gone.actor as "deletedBy", gone.reason as "deletedFor"
    from (select * from (select from_commit as "commit", to_commit as until, ended, revision,
          body${asText} as body, schema_version as "schemaVersion"
        from daybook_record_version where ${mine} and from_commit >= coalesce(
          (select max(from_commit) from daybook_record_version where ${mine} and from_commit <= ${after}), 0)
        order by from_commit limit ${count + 1}) as past
      union all select from_commit, null, null, revision, body${asText}, schema_version from daybook_record where ${mine}) as version
    left join daybook_record_commit as made on made.tenant_id = ${reader.tenant} and made.id = version."commit"
    left join daybook_record_commit as gone on gone.tenant_id = ${reader.tenant} and gone.id = version.until
      and version.ended = 'deleted'
    order by version."commit"`);
}

function toVersions<Value>(row: VersionRow, before: VersionRow | undefined): Version<Value>[] {
  const { commit, at, actor, reason, revision, body, schemaVersion, until, deletedAt } = row;
  const kind = before?.until === commit ? "updated" : "created";
  const value = JSON.parse(body) as Value;
  const made: Version<Value> = { kind, commit, at, actor, reason, revision, value, schemaVersion };
  if (until === null || deletedAt === null) return [made];
  const by = { actor: row.deletedBy, reason: row.deletedFor };
  return [made, { ...made, kind: "deleted", commit: until, at: deletedAt, ...by, value: null }];
}

export type Blamed = Pick<Version, "commit" | "at" | "actor" | "reason" | "revision">;

/** For each field of a record, the commit that last set it. */
export async function readBlame(
  reader: RecordReader,
  type: AnyRecordType,
  key: string | RelationKey,
): Promise<Record<string, Blamed>> {
  let fields: Record<string, unknown> | null = null;
  let blamed: Record<string, Blamed> = {};
  let after: number | null = 0;
  while (after !== null) {
    const page: HistoryPage<Record<string, unknown>> = await readHistory(reader, type, key, {
      after,
      limit: limits.pageMax,
    });
    for (const version of page.items) {
      blamed = blame(version, fields, blamed);
      fields = version.value;
    }
    after = page.next;
  }
  if (fields === null) throw noRecord(type.name, recordKey(type, key));
  return blamed;
}

function blame(
  { value, commit, at, actor, reason, revision }: Version<Record<string, unknown>>,
  before: Record<string, unknown> | null,
  blamed: Record<string, Blamed>,
): Record<string, Blamed> {
  const entries = Object.entries(value ?? {}).map(([name, now]): [string, Blamed] => {
    const isSame = before !== null && Object.hasOwn(before, name) && toJson(before[name]) === toJson(now);
    const known = isSame ? blamed[name] : undefined;
    return [name, known ?? { commit, at, actor, reason, revision }];
  });
  return Object.fromEntries(entries);
}
