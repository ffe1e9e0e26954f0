// A type as the book knows it: a row, made with the first record that is written of it, and a row for each schema that it
// had. Both never change, so what is committed of them is remembered.
import { DaybookError } from "../core/error.ts";
import type { Ids } from "../core/id.ts";
import { sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { Sql } from "../storage/sql.ts";
import type { AnyRecordType } from "./relation.ts";
import { schemaText } from "./schema-text.ts";

export type TypeRow = {
  readonly seq: number;
  readonly kind: "entity" | "relation";
  readonly name: string;
  readonly from_type_seq: number | null;
  readonly to_type_seq: number | null;
};

/** A type that records may be written of. */
export type WritableType = TypeRow & { readonly schemaVersion: number };

/** One that was read from the book: it is about records of this tenant alone. */
export type StoredType = WritableType & { readonly tenant: string };

type Known = { readonly types: Map<string, TypeRow>; readonly writable: Map<string, WritableType> };

const knownOf = new WeakMap<Ids, Known>();

function knownIn(ids: Ids): Known {
  let known = knownOf.get(ids);
  if (known === undefined) knownOf.set(ids, (known = { types: new Map(), writable: new Map() }));
  return known;
}

const nameIn = (tenant: string, name: string): string => `${tenant}\n${name}`;

/** The row of a type; undefined while nothing was written of it. `committed`: what it reads is there to stay. */
export async function findType(
  reader: { all<R>(statement: Sql): Awaitable<R[]>; readonly ids: Ids; readonly committed: boolean },
  tenant: string,
  name: string,
): Promise<TypeRow | undefined> {
  const known = knownIn(reader.ids).types.get(nameIn(tenant, name));
  if (known !== undefined) return known;
  const [row] = await reader.all<TypeRow>(selectType(tenant, name));
  if (row !== undefined && reader.committed) knownIn(reader.ids).types.set(nameIn(tenant, name), row);
  return row;
}

function selectType(tenant: string, name: string): Sql {
  return sql`select seq, kind, name, from_type_seq, to_type_seq from daybook_record_type
    where tenant_id = ${tenant} and name = ${name}`;
}

/** Registers the type and its schema in this transaction unless the book has them. */
export async function registerType(tx: Tx, type: AnyRecordType): Promise<WritableType> {
  const { hash } = schemaText(type);
  const known = knownIn(tx.ids).writable;
  const name = nameIn(tx.tenant, `${type.name}\n${hash}`);
  const found = known.get(name);
  if (found !== undefined) return checkKind(found, type);
  const row = checkKind((await readOrMakeType(tx, type)) satisfies TypeRow, type);
  const made = { ...row, schemaVersion: await readOrMakeSchema(tx, row.seq, type) };
  // Not before: what was made in this transaction may yet be undone.
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
  const read = async (): Promise<number | undefined> =>
    (
      await tx.get<{ version: number }>(
        sql`select version from daybook_record_schema where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and hash = ${hash}`,
      )
    )?.version;
  const found = await read();
  if (found !== undefined) return found;
  const last = await tx.get<{ version: number | null }>(
    sql`select max(version) as version from daybook_record_schema where tenant_id = ${tx.tenant} and type_seq = ${typeSeq}`,
  );
  const version = (last?.version ?? 0) + 1;
  await tx.run(sql`insert into daybook_record_schema (tenant_id, type_seq, version, schema, hash, reason, created_at)
    values (${tx.tenant}, ${typeSeq}, ${version}, ${text}, ${hash}, ${version === 1 ? "initial" : "changed"}, ${tx.now})
    on conflict (tenant_id, type_seq, hash) do nothing`);
  return (await read()) as number;
}

function checkKind<Row extends TypeRow>(row: Row, type: AnyRecordType): Row {
  if (row.kind === type.kind) return row;
  throw new DaybookError("conflict", `"${type.name}" is ${article(row.kind)} in this book, not ${article(type.kind)}`, {
    details: { type: type.name, kind: row.kind },
  });
}

// What is linked already would point at keys of another type.
function checkEnds(row: TypeRow, type: AnyRecordType, ends: readonly WritableType[] | undefined): TypeRow {
  if (row.from_type_seq === ends?.[0]?.seq && row.to_type_seq === ends?.[1]?.seq) return row;
  throw new DaybookError(
    "conflict",
    `"${type.name}" connects other entities in this book: keep its "from" and "to", or give the new relation another name`,
    { details: { type: type.name } },
  );
}

function article(kind: string): string {
  return kind === "entity" ? "an entity" : "a relation";
}
