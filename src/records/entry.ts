// A record as its reader sees it.
import type { AnyEntity, Entity, AnyRecordType, Relation, RelationKey } from "./define/definition.ts";
import { sql } from "../storage/sql.ts";
import { asText } from "../storage/word.ts";
import { type AsOf, type Moment, momentOf } from "./moment.ts";
import { type RecordKey, recordKey } from "./define/record-key.ts";
import type { RecordReader } from "./record-reader.ts";

/** The document of a definition, and what it takes for one. */
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
  /** The commit that wrote it; null for what this transaction has written and not committed. */
  readonly commit: number | null;
  readonly schemaVersion: number;
};

export type EntryOf<Type> = Entry<ValueOf<Type>, KeyOf<Type>>;

export type EntryRow = {
  readonly key: string;
  readonly from_key: string | null;
  readonly to_key: string | null;
  readonly instance_key: string | null;
  readonly body: string;
  readonly revision: number;
  readonly from_commit: number | null;
  readonly schema_version: number;
};

export function toEntry<Type extends AnyRecordType>(type: string, row: EntryRow): EntryOf<Type> {
  const entry: Entry = {
    type,
    key: keyOfRow(row),
    value: JSON.parse(row.body),
    revision: row.revision,
    commit: row.from_commit,
    schemaVersion: row.schema_version,
  };
  return entry as EntryOf<Type>;
}

type KeyRow = Pick<EntryRow, "key" | "from_key" | "to_key" | "instance_key">;

export function keyOfRow(row: KeyRow): string | RelationKey {
  if (row.from_key === null) return row.key;
  return { from: row.from_key, to: row.to_key ?? "", instance: row.instance_key ?? "" };
}

// One record by its key, now or as it was known.

export type ReadOptions = { readonly asOf?: AsOf };

export async function readEntry<Type extends AnyRecordType>(
  reader: RecordReader,
  type: Type,
  key: string | RelationKey,
  options: ReadOptions,
): Promise<EntryOf<Type> | undefined> {
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
  if (moment === null) {
    const change = reader.pending().find(({ row, key }) => row.seq === type.seq && key === at.key);
    if (change !== undefined) {
      if (change.body === null) return undefined;
      const { key, ends, body, revision, row } = change;
      return {
        ...{ key, from_key: ends?.from ?? null, to_key: ends?.to ?? null, instance_key: ends?.instance ?? null },
        ...{ body, revision, from_commit: null, schema_version: row.schemaVersion },
      };
    }
  }
  const [row] = await reader.point<EntryRow>(selectRow(reader.tenant, type.seq, at.key, moment));
  return row;
}

function selectRow(tenant: string, type: number, key: string, moment: Moment) {
  const columns = sql`key, from_key, to_key, instance_key, body${asText} as body, revision, from_commit, schema_version`;
  const mine = sql`tenant_id = ${tenant} and type_seq = ${type} and key = ${key}`;
  if (moment === null) return sql`select ${columns} from daybook_record where ${mine}`;
  // The newest version that had begun by then, if it had not ended: one seek, however many there are. Only where there is
  // none is what is known now looked at.
  return sql`select key, from_key, to_key, instance_key, body, revision, from_commit, schema_version
      from (select ${columns}, to_commit from daybook_record_version where ${mine} and from_commit <= ${moment}
        order by from_commit desc limit 1) as past where to_commit > ${moment}
    union all select ${columns} from daybook_record where ${mine} and from_commit <= ${moment} limit 1`;
}
