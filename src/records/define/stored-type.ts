// Types as the book knows them, for callers without definitions: the command line, the server, a tool. No schema checks the
// documents that they write, because a schema is code.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { invalid, notFound, type DaybookError } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { nearest } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { RecordReader } from "../record-reader.ts";
import { keyReader, type AnyEntity, type AnyRecordType } from "./definition.ts";
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
  readonly from: string | null;
  readonly to: string | null;
  readonly schema: string;
};

const selectTypes = sql`select type.seq, type.kind, type.name, type.from_type_seq, type.to_type_seq, ends_from.name as "from",
    ends_to.name as "to", newest.version as "schemaVersion", newest.schema
  from daybook_record_type as type
  join daybook_record_schema as newest on newest.type_seq = type.seq
    and newest.version = (select max(version) from daybook_record_schema as other where other.type_seq = type.seq)
  left join daybook_record_type as ends_from on ends_from.seq = type.from_type_seq
  left join daybook_record_type as ends_to on ends_to.seq = type.to_type_seq`;

/** Every type of which a record was ever written, by name. */
export async function listTypes(reader: RecordReader): Promise<RecordTypeInfo[]> {
  const rows = await reader.heavy<
    StoredRow & { records: number }
  >(sql`select types.*, (select count(*) from daybook_record record where record.type_seq = types.seq) as records
    from (${selectTypes} where type.tenant_id = ${reader.tenant}) as types order by name`);
  return rows.map(({ name, kind, from, to, schemaVersion, schema, records }) => {
    const parsed = JSON.parse(schema) as unknown;
    return { name, kind, from, to, schemaVersion, schema: parsed, records: Number(records) };
  });
}

/** A definition that is made from what the book knows. */
export async function storedDefinition(reader: RecordReader, name: string): Promise<AnyRecordType> {
  if (typeof name !== "string") throw invalid(`the name of a record type is a text, not ${quote(name)}`);
  const [row] = await reader.point<StoredRow>(
    sql`${selectTypes} where type.tenant_id = ${reader.tenant} and type.name = ${name}`,
  );
  if (row === undefined) throw await unknownType(reader, name);
  const stored: StoredType = { ...row, tenant: reader.tenant };
  const about = JSON.parse(row.schema) as { key?: string | null; instanceKey?: string | null };
  const same = { name, schema: unchecked, indexes: [], search: [], stored };
  if (row.kind === "entity") {
    const key = about.key ?? null;
    const keyOf = key === null ? () => refuseKey(name) : keyReader(key, `entity "${name}"`, "key");
    return { ...same, kind: "entity", keyOf, keyField: key };
  }
  const instance = about.instanceKey ?? null;
  return {
    ...same,
    kind: "relation",
    from: (await storedDefinition(reader, row.from ?? "")) as AnyEntity,
    to: (await storedDefinition(reader, row.to ?? "")) as AnyEntity,
    instanceField: instance,
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
  const all = known.length === 0 ? "nothing was written yet" : `known: ${known.join(", ")}`;
  const hint = meant === undefined ? all : `did you mean "${meant}"?`;
  return notFound(`there are no records of type ${JSON.stringify(name)}: ${hint}`, { type: name });
}
