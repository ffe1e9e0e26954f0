// Everything that ever happened to one key, the oldest first.
import { checkCount } from "../core/count.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Some } from "../storage/store.ts";
import { asText } from "../storage/word.ts";
import { type RecordKey, recordKey } from "./define/record-key.ts";
import type { RecordReader } from "./record-reader.ts";
import type { AnyRecordType, RelationKey } from "./define/definition.ts";
import type { ChangeKind } from "./room.ts";
import { toJson } from "../core/json.ts";
import { notFound } from "./write/write.ts";

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
  from_commit: number;
  /** Null of what is known now. */
  to_commit: number | null;
  deleted: number;
  revision: number;
  body: string;
  schema_version: number;
  made_at: number;
  made_actor: string | null;
  made_reason: string | null;
  /** Of the commit that deleted it. */
  gone_at: number | null;
  gone_actor: string | null;
  gone_reason: string | null;
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
  const { rows, more } = await readVersions(reader, type.name, recordKey(type, key), after, limit + 1);
  const found = rows
    .flatMap((row, index) => toVersions<Value>(row, rows[index - 1]))
    .filter((each) => each.commit > after);
  const items = found.slice(0, limit);
  return { items, next: found.length > limit || more ? (items.at(-1)?.commit ?? null) : null };
}

/** The versions that tell the next `count` things that happened: each tells when it was made, and may tell that it was
 *  deleted. So they begin with the one that held at `after`, and the order of the index ends the search. */
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
    select version.*, made.committed_at as made_at, made.actor as made_actor, made.reason as made_reason,
      gone.committed_at as gone_at, gone.actor as gone_actor, gone.reason as gone_reason
    from (select * from (select from_commit, to_commit, case ended when 'deleted' then 1 else 0 end as deleted, revision,
          body${asText} as body, schema_version from daybook_record_version where ${mine} and from_commit >= coalesce(
            (select max(from_commit) from daybook_record_version where ${mine} and from_commit <= ${after}), 0)
        order by from_commit limit ${count + 1}) as past
      union all select from_commit, null, 0, revision, body${asText}, schema_version from daybook_record where ${mine}) as version
    left join daybook_record_commit as made on made.tenant_id = ${reader.tenant} and made.id = version.from_commit
    left join daybook_record_commit as gone on gone.tenant_id = ${reader.tenant} and gone.id = version.to_commit
      and version.deleted = 1
    order by version.from_commit`);
}

function toVersions<Value>(row: VersionRow, before: VersionRow | undefined): Version<Value>[] {
  const same = { revision: row.revision, schemaVersion: row.schema_version };
  const made: Version<Value> = {
    kind: before?.to_commit === row.from_commit ? "updated" : "created",
    ...{ commit: row.from_commit, at: row.made_at, actor: row.made_actor, reason: row.made_reason },
    ...{ ...same, value: JSON.parse(row.body) as Value },
  };
  if (row.deleted === 0 || row.to_commit === null) return [made];
  const { to_commit: commit, gone_at: at, gone_actor: actor, gone_reason: reason } = row;
  return [made, { kind: "deleted", commit, at: at ?? 0, actor, reason, ...same, value: null }];
}

// For each field of a record: the commit that last set it to what it is.

export type Blamed = Pick<Version, "commit" | "at" | "actor" | "reason" | "revision">;

export async function readBlame(
  reader: RecordReader,
  type: AnyRecordType,
  key: string | RelationKey,
): Promise<Record<string, Blamed>> {
  let fields: Record<string, unknown> | null = null;
  let blamed = new Map<string, Blamed>();
  let after: number | null = 0;
  while (after !== null) {
    const { items, next }: Awaited<ReturnType<typeof readHistory<Record<string, unknown>>>> = await readHistory(
      reader,
      type,
      key,
      { after, limit: limits.pageMax },
    );
    for (const { value, commit, at, actor, reason, revision } of items) {
      blamed = new Map(
        Object.entries(value ?? {}).map(([name, now]) => {
          const before = fields !== null && Object.hasOwn(fields, name) ? toJson(fields[name]) : undefined;
          const kept = before === toJson(now) ? blamed.get(name) : undefined;
          return [name, kept ?? { commit, at, actor, reason, revision }];
        }),
      );
      fields = value;
    }
    after = next;
  }
  if (fields === null) throw notFound(type.name, recordKey(type, key));
  return Object.fromEntries(blamed);
}
