// A type as the book knows it: a row that the first write of such a record makes, and a row for each schema that the type
// had. Neither ever changes, so committed ones are cached. Callers without definitions (the command line, the server, a tool) get
// one that is made from these rows.
import { createHash } from "node:crypto";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { conflict, invalid, notFound, type DaybookError } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { quote } from "../../core/quote.ts";
import { rememberFor, type Keep } from "../../core/remember.ts";
import { jsonSchemaOf } from "../../core/standard-schema.ts";
import { nearest } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import type { RecordReader } from "../record-reader.ts";
import { keyReader, type AnyEntity, type AnyRecordType } from "./definition.ts";

export type TypeRow = {
  readonly seq: number;
  readonly kind: "entity" | "relation";
  readonly name: string;
  readonly from_type_seq: number | null;
  readonly to_type_seq: number | null;
};

/** A type with the schema version that new records get. */
export type WritableType = TypeRow & { readonly schemaVersion: number };

/** A type that was read from the book. It serves the records of this tenant only. */
export type StoredType = WritableType & { readonly tenant: string };

type Known = { readonly types: Map<string, TypeRow>; readonly writable: Map<string, WritableType> };

function knownIn(keep: Keep): Known {
  return keep("record types", () => ({ types: new Map(), writable: new Map() }));
}

const nameIn = (tenant: string, name: string): string => `${tenant}\n${name}`;

/** The row of a type; undefined while no record of it was written. `committed`: the reader sees committed rows only. */
export async function findType(
  reader: { all<R>(statement: Sql): Awaitable<R[]>; readonly keep: Keep; readonly committed: boolean },
  tenant: string,
  name: string,
): Promise<TypeRow | undefined> {
  const known = knownIn(reader.keep).types.get(nameIn(tenant, name));
  if (known !== undefined) return known;
  const [row] = await reader.all<TypeRow>(selectType(tenant, name));
  if (row !== undefined && reader.committed) knownIn(reader.keep).types.set(nameIn(tenant, name), row);
  return row;
}

function selectType(tenant: string, name: string): Sql {
  return sql`select seq, kind, name, from_type_seq, to_type_seq from daybook_record_type
    where tenant_id = ${tenant} and name = ${name}`;
}

/** Registers the type and its schema in this transaction unless the book has them. */
export async function registerType(tx: Tx, type: AnyRecordType): Promise<WritableType> {
  const { hash } = schemaText(type);
  const known = knownIn(tx.keep).writable;
  const name = nameIn(tx.tenant, `${type.name}\n${hash}`);
  const found = known.get(name);
  if (found !== undefined) return checkKind(found, type);
  const row = checkKind((await readOrMakeType(tx, type)) satisfies TypeRow, type);
  const made = { ...row, schemaVersion: await readOrMakeSchema(tx, row.seq, type) };
  // Not earlier: this transaction may still roll back.
  tx.afterCommit(() => void known.set(name, made));
  return made;
}

async function readOrMakeType(tx: Tx, type: AnyRecordType): Promise<TypeRow> {
  const found = await tx.get<TypeRow>(selectType(tx.tenant, type.name));
  if (found !== undefined && (found.kind === "entity" || type.kind === "entity")) return found;
  const ends =
    type.kind === "entity" ? undefined : [await registerType(tx, type.from), await registerType(tx, type.to)];
  if (found !== undefined) return checkEnds(found, type, ends);
  await tx.run(sql`insert into daybook_record_type (tenant_id, kind, name, from_type_seq, to_type_seq, created_at)
    values (${tx.tenant}, ${type.kind}, ${type.name}, ${ends?.[0]?.seq ?? null}, ${ends?.[1]?.seq ?? null}, ${tx.now})
    on conflict (tenant_id, name) do nothing`);
  return (await tx.get<TypeRow>(selectType(tx.tenant, type.name))) as TypeRow;
}

async function readOrMakeSchema(tx: Tx, typeSeq: number, type: AnyRecordType): Promise<number> {
  const { text, hash } = schemaText(type);
  const mine = sql`tenant_id = ${tx.tenant} and type_seq = ${typeSeq}`;
  const read = (): Awaitable<{ version: number } | undefined> =>
    tx.get(sql`select version from daybook_record_schema where ${mine} and hash = ${hash}`);
  const found = await read();
  if (found !== undefined) return found.version;
  const last = await tx.get<{ version: number | null }>(
    sql`select max(version) as version from daybook_record_schema where ${mine}`,
  );
  const version = (last?.version ?? 0) + 1;
  await tx.run(sql`insert into daybook_record_schema (tenant_id, type_seq, version, schema, hash, reason, created_at)
    values (${tx.tenant}, ${typeSeq}, ${version}, ${text}, ${hash}, ${version === 1 ? "initial" : "changed"}, ${tx.now})
    on conflict (tenant_id, type_seq, hash) do nothing`);
  return (await read())?.version ?? version;
}

function checkKind<Row extends TypeRow>(row: Row, type: AnyRecordType): Row {
  if (row.kind === type.kind) return row;
  const [known, given] = [row.kind, type.kind].map((kind) => (kind === "entity" ? "an entity" : "a relation"));
  throw conflict(`"${type.name}" is ${known} in this book, not ${given}`, { type: type.name, kind: row.kind });
}

// Relations that exist already would point at keys of another type.
function checkEnds(row: TypeRow, type: AnyRecordType, ends: readonly WritableType[] | undefined): TypeRow {
  if (row.from_type_seq === ends?.[0]?.seq && row.to_type_seq === ends?.[1]?.seq) return row;
  throw conflict(
    `"${type.name}" connects other entities in this book: keep its "from" and "to", or give the new relation another name`,
    { type: type.name },
  );
}

/** A schema as canonical text, for people and for later comparison, and the hash that tells whether two programs mean the same. */
type SchemaText = { readonly text: string; readonly hash: string };

const schemaText = rememberFor((type: AnyRecordType): SchemaText => {
  const text = toJson(describe(type), { what: `the schema of "${type.name}"` });
  return { text, hash: createHash("sha256").update(text).digest("hex") };
});

function describe(type: AnyRecordType): Record<string, unknown> {
  const document = type.schema === undefined ? { vendor: null } : describeDocument(type.schema);
  return type.kind === "entity"
    ? { kind: "entity", key: type.keyField, document }
    : { kind: "relation", from: type.from.name, to: type.to.name, instanceKey: type.instanceField, document };
}

// Only the library knows what JSON Schema cannot say, such as a schema's own functions; a change there goes unnoticed.
function describeDocument(schema: StandardSchemaV1): Record<string, unknown> {
  const { vendor } = schema["~standard"];
  const written = jsonSchemaOf(schema, "output");
  return written === undefined ? { vendor } : { vendor, jsonSchema: written };
}

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
  const rows = await reader.heavy<RecordTypeInfo & { schema: string }>(sql`
    select name, kind, "from", "to", "schemaVersion", schema,
      (select count(*) from daybook_record record where record.type_seq = types.seq) as records
    from (${selectTypes} where type.tenant_id = ${reader.tenant}) as types order by name`);
  return rows.map((row) => ({ ...row, schema: JSON.parse(row.schema) as unknown }));
}

/** A definition that is made from what the book knows. It does not check the documents, because a schema is code. */
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
