// Types as the book knows them, for whoever has no definitions: the command line, the server, a tool. Documents written
// through them are not checked by a schema, because a schema is code.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { DaybookError, invalid } from "../../core/error.ts";
import { nearest } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import { type AnyEntity, type AnyRecordType, keyReader } from "./definition.ts";
import type { RecordReader } from "../record-reader.ts";
import type { StoredType, WritableType } from "./record-type.ts";

export type RecordTypeInfo = {
  readonly name: string;
  readonly kind: "entity" | "relation";
  /** The entities that a relation connects. */
  readonly from: string | null;
  readonly to: string | null;
  readonly schemaVersion: number;
  readonly schema: unknown;
  /** How many there are now. */
  readonly records: number;
};

type StoredRow = WritableType & {
  readonly from_name: string | null;
  readonly to_name: string | null;
  readonly schema_version: number;
  readonly schema: string;
};

const selectTypes = sql`select type.seq, type.kind, type.name, type.from_type_seq, type.to_type_seq, ends_from.name as from_name,
    ends_to.name as to_name, newest.version as schema_version, newest.schema
  from daybook_record_type as type
  join daybook_record_schema as newest on newest.type_seq = type.seq
    and newest.version = (select max(version) from daybook_record_schema as other where other.type_seq = type.seq)
  left join daybook_record_type as ends_from on ends_from.seq = type.from_type_seq
  left join daybook_record_type as ends_to on ends_to.seq = type.to_type_seq`;

/** Every type of which something was ever written, by name. */
export async function listTypes(reader: RecordReader): Promise<RecordTypeInfo[]> {
  const rows = await reader.heavy<
    StoredRow & { records: number }
  >(sql`select types.*, (select count(*) from daybook_record record where record.type_seq = types.seq) as records
    from (${selectTypes} where type.tenant_id = ${reader.tenant}) as types order by name`);
  return rows.map((row) => ({
    ...{ name: row.name, kind: row.kind, from: row.from_name, to: row.to_name },
    ...{ schemaVersion: row.schema_version, schema: JSON.parse(row.schema) as unknown, records: Number(row.records) },
  }));
}

/** A definition made from what the book knows. */
export async function storedDefinition(reader: RecordReader, name: string): Promise<AnyRecordType> {
  const [row] = await reader.point<StoredRow>(
    sql`${selectTypes} where type.tenant_id = ${reader.tenant} and type.name = ${name}`,
  );
  if (row === undefined) throw await unknownType(reader, name);
  const stored: StoredType = { ...row, schemaVersion: row.schema_version, tenant: reader.tenant };
  const about = JSON.parse(row.schema) as { key?: string | null; instanceKey?: string | null };
  const same = { name, schema: unchecked, indexes: [], search: [], stored };
  if (row.kind === "entity") {
    const key = about.key ?? null;
    const keyOf = key === null ? () => refuseKey(name) : keyReader(key, `entity "${name}"`, "key");
    return { ...same, kind: "entity", keyOf, keyField: key };
  }
  const ends = [await storedDefinition(reader, row.from_name ?? ""), await storedDefinition(reader, row.to_name ?? "")];
  const instance = about.instanceKey ?? null;
  return {
    ...same,
    ...{ kind: "relation", from: ends[0] as AnyEntity, to: ends[1] as AnyEntity, instanceField: instance },
    instanceOf: instance === null ? undefined : keyReader(instance, `relation "${name}"`, "instanceKey"),
  };
}

const unchecked: StandardSchemaV1 = {
  "~standard": { version: 1, vendor: "daybook", validate: (value) => ({ value }) },
};

function refuseKey(name: string): never {
  throw invalid(`the key of "${name}" is made by a function, which only its definition has: write it with a program`);
}

async function unknownType(reader: RecordReader, name: string): Promise<DaybookError> {
  const known = (await listTypes(reader)).map((type) => type.name);
  const meant = nearest(name, known);
  const hint =
    meant === undefined
      ? known.length === 0
        ? "nothing was written yet"
        : `known: ${known.join(", ")}`
      : `did you mean "${meant}"?`;
  return new DaybookError("not_found", `there are no records of type ${JSON.stringify(name)}: ${hint}`, {
    details: { type: name },
  });
}
