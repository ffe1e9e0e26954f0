// A record as its reader sees it: by its key, now or as of a moment of the past.
import { refuseUnknown } from "../core/suggest.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import { asText } from "../storage/word.ts";
import type { AnyEntity, AnyRecordType, Entity, Relation, RelationKey } from "./define/definition.ts";
import { recordKey, type RecordKey } from "./define/record-key.ts";
import { momentOf, type AsOf, type Moment } from "./commit.ts";
import type { RecordReader } from "./record-reader.ts";

/** The document of a definition. */
export type ValueOf<Type> =
  Type extends Entity<unknown, infer Value>
    ? Value
    : Type extends Relation<unknown, unknown, unknown, infer Value>
      ? Value
      : unknown;
export type KeyOf<Type> = Type extends AnyEntity ? string : RelationKey;

export type Entry<Value = unknown, Key = string | RelationKey> = {
  readonly type: string;
  readonly key: Key;
  readonly value: Value;
  readonly revision: number;
  /** The commit that wrote it; null for a record that this transaction wrote and did not commit yet. */
  readonly commit: number | null;
  readonly schemaVersion: number;
};

export type EntryOf<Type> = Entry<ValueOf<Type>, KeyOf<Type>>;

/** The columns by which a record is known; an entity has no ends. */
export type KeyRow = {
  readonly key: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly instance: string | null;
};

type VersionRow = KeyRow & Pick<Entry, "revision" | "commit" | "schemaVersion">;
export type EntryRow = VersionRow & { readonly body: string };

/** Selects an `EntryRow` from a table of records under this alias. */
export function entryColumns(alias: string): Sql {
  const a = alias;
  const ends = rawSql(`${a}.key, ${a}.from_key as "from", ${a}.to_key as "to", ${a}.instance_key as "instance"`);
  const version = rawSql(`${a}.revision, ${a}.from_commit as "commit", ${a}.schema_version as "schemaVersion"`);
  return sql`${ends}, ${rawSql(a)}.body${asText} as body, ${version}`;
}

export function toEntry<Type extends AnyRecordType>(type: string, row: EntryRow): EntryOf<Type> {
  return entryOf(type, row, JSON.parse(row.body)) as EntryOf<Type>;
}

export function entryOf(type: string, row: VersionRow, value: unknown): Entry {
  const { revision, commit, schemaVersion } = row;
  return { type, key: keyOfRow(row), value, revision, commit, schemaVersion };
}

export function keyOfRow({ key, from, to, instance }: KeyRow): string | RelationKey {
  return from === null ? key : { from, to: to ?? "", instance: instance ?? "" };
}

/** The document of a version, or null where there is none. */
export function parseDocument<Value>(body: string | null): Value | null {
  return body === null ? null : (JSON.parse(body) as Value);
}

export type ReadOptions = { readonly asOf?: AsOf };

export async function readEntry<Type extends AnyRecordType>(
  reader: RecordReader,
  type: Type,
  key: string | RelationKey,
  options: ReadOptions = {},
): Promise<EntryOf<Type> | undefined> {
  refuseUnknown(options, ["asOf"], "reading a record");
  const at = recordKey(type, key);
  const row = await readRow(reader, type.name, at, await momentOf(reader, options.asOf));
  return row && toEntry<Type>(type.name, row);
}

export async function readRow(
  reader: RecordReader,
  name: string,
  at: RecordKey,
  moment: Moment,
): Promise<EntryRow | undefined> {
  const type = await reader.typeOf(name);
  if (type === undefined) return undefined;
  const change = reader.pending().find(({ row, key }) => row.seq === type.seq && key === at.key);
  if (moment === null && change !== undefined) {
    const { key, ends, body, revision, row } = change;
    const { from, to, instance } = ends ?? { from: null, to: null, instance: null };
    if (body === null) return undefined;
    return { key, from, to, instance, body, revision, commit: null, schemaVersion: row.schemaVersion };
  }
  const [row] = await reader.point<EntryRow>(selectRow(reader.tenant, type.seq, at.key, moment));
  return row;
}

const liveColumns = entryColumns("record");
const pastColumns = entryColumns("past");

function selectRow(tenant: string, type: number, key: string, moment: Moment): Sql {
  const mine = sql`tenant_id = ${tenant} and type_seq = ${type} and key = ${key}`;
  if (moment === null) return sql`select ${liveColumns} from daybook_record record where ${mine}`;
  // The newest version that had begun by then, if it had not ended: one seek, however many versions there are. Only when there
  // is none, the live row is read.
  return sql`select ${pastColumns} from (select * from daybook_record_version
        where ${mine} and from_commit <= ${moment} order by from_commit desc limit 1) as past where to_commit > ${moment}
    union all select ${liveColumns} from daybook_record record where ${mine} and from_commit <= ${moment} limit 1`;
}
