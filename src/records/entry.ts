// A record as its reader sees it.
import type { AnyEntity, Entity } from "./entity.ts";
import type { AnyRecordType, Relation, RelationKey } from "./relation.ts";

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
