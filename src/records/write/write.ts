// The verbs that write. Each reads what the unit sees, checks its conditions and changes the unit. Nothing reaches the book
// before the unit ends.
import { conflict, invalid, notFound, type DaybookError } from "../../core/error.ts";
import { isObject, toJson } from "../../core/json.ts";
import { sql } from "../../storage/sql.ts";
import type { AnyEntity, AnyRecordType, AnyRelation, RelationKey } from "../define/definition.ts";
import { checkDocument, keyOfChanged, keyOfDocument, keyOfLink, nameRecord, recordKey } from "../define/record-key.ts";
import type { Document, Ends, RecordKey } from "../define/record-key.ts";
import type { WritableType } from "../define/record-type.ts";
import { storedDefinition } from "../define/stored-type.ts";
import { txReader } from "../record-reader.ts";
import { checkPreconditions, type WriteOptions } from "./precondition.ts";
import type { Change, RecordUnit } from "./record-unit.ts";

/** The record after a write; `changed` is false when the write made no version. */
export type Written = { readonly key: string | RelationKey; readonly revision: number; readonly changed: boolean };

export function put(unit: RecordUnit, type: AnyEntity, document: Document, options: WriteOptions): Promise<Written> {
  return putAt(unit, type, keyOfDocument(type, document), document, options);
}

/** Puts a document under a key that is known already. */
export async function putAt(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  document: Document,
  options: WriteOptions,
): Promise<Written> {
  const row = await unit.typeOf(type);
  await checkPreconditions(unit, type.name, at, await unit.stateOf(row, at), options);
  return written(await unit.set(type, row, at, document.body));
}

/** Like put, but a document that is the same already makes no version. */
export async function ensure(
  unit: RecordUnit,
  type: AnyEntity,
  document: Document,
  options: WriteOptions,
): Promise<Written> {
  const row = await unit.typeOf(type);
  const at = keyOfDocument(type, document);
  const state = await unit.stateOf(row, at);
  // PostgreSQL stores JSON in its own form and spells it differently.
  if (state !== undefined && toJson(JSON.parse(state.body)) === document.body) {
    const { ifRevision: _revision, ifAbsent: _absent, ...rest } = options;
    // The record is as wanted, so only the condition about the whole book is left to check.
    await checkPreconditions(unit, type.name, at, state, state.commit === null ? {} : rest);
    return { key: at.ends ?? at.key, revision: state.revision, changed: false };
  }
  await checkPreconditions(unit, type.name, at, state, options);
  return written(await unit.set(type, row, at, document.body));
}

/** Lays the given fields over the document; a field that is given as undefined is removed. */
export async function patch(
  unit: RecordUnit,
  type: AnyRecordType,
  key: string | RelationKey,
  fields: object,
  options: WriteOptions,
): Promise<Written> {
  if (!isObject(fields)) throw invalid(`patch of "${type.name}" takes an object with the fields to change`);
  const row = await unit.typeOf(type);
  const at = recordKey(type, key);
  const state = await unit.stateOf(row, at);
  await checkPreconditions(unit, type.name, at, state, options);
  if (state === undefined) throw noRecord(type.name, at);
  const document = await checkDocument(type, withoutUndefined({ ...parse(state.body), ...fields }));
  refuseMoved(type, at, document);
  return written(await unit.set(type, row, at, document.body));
}

export async function link(
  unit: RecordUnit,
  type: AnyRelation,
  ends: { readonly from: string; readonly to: string },
  document: Document,
  options: WriteOptions,
): Promise<Written> {
  const row = await unit.typeOf(type);
  const at = keyOfLink(type, ends.from, ends.to, document);
  for (const side of ["from", "to"] as const) {
    const end = recordKey(type[side], ends[side]);
    if ((await unit.stateOf(await unit.typeOf(type[side]), end)) !== undefined) continue;
    throw notFound(
      `${nameRecord(type.name, at)} needs its ${type[side].name} ${JSON.stringify(ends[side])}, which does not exist: put it first`,
      { type: type.name, side, key: ends[side] },
    );
  }
  await checkPreconditions(unit, type.name, at, await unit.stateOf(row, at), options);
  return written(await unit.set(type, row, at, document.body));
}

export type DeleteOptions = WriteOptions & {
  /** True: unlinks the entity's relations in the same commit. Otherwise they keep it from being deleted. */
  readonly unlink?: boolean;
};

/** Whether there was something to delete. */
export async function remove(
  unit: RecordUnit,
  type: AnyRecordType,
  key: string | RelationKey,
  options: DeleteOptions,
): Promise<boolean> {
  const row = await unit.typeOf(type);
  const at = recordKey(type, key);
  const state = await unit.stateOf(row, at);
  await checkPreconditions(unit, type.name, at, state, options);
  if (state === undefined) return false;
  if (type.kind === "entity") await unlinkAll(unit, row, at, options.unlink === true);
  await unit.set(type, row, at, null);
  return true;
}

type LinkRow = Ends & { readonly type_seq: number; readonly key: string; readonly name: string };

/** A relation never points at nothing: an entity that has relations is deleted together with them, or not at all. */
async function unlinkAll(unit: RecordUnit, row: WritableType, at: RecordKey, allowed: boolean): Promise<void> {
  const { tx } = unit;
  const links = sql`select record.type_seq, record.key, record_type.name, from_key as "from", to_key as "to",
      instance_key as "instance"
    from daybook_record record join daybook_record_type record_type on record_type.seq = record.type_seq`;
  const rows = await tx.all<LinkRow>(sql`
    ${links} where record.tenant_id = ${tx.tenant} and record.from_type_seq = ${row.seq} and from_key = ${at.key}
    union ${links} where record.tenant_id = ${tx.tenant} and record.to_type_seq = ${row.seq} and to_key = ${at.key}`);
  const linked = rows.filter((each) => unit.changes.get(`${each.type_seq} ${each.key}`)?.body !== null);
  const made = [...unit.changes.values()].filter(
    ({ body, ends, row: { from_type_seq: from, to_type_seq: to } }) =>
      body !== null &&
      ends !== null &&
      ((from === row.seq && ends.from === at.key) || (to === row.seq && ends.to === at.key)),
  );
  const names = new Set([...linked.map((each) => each.name), ...made.map((each) => each.type.name)]);
  if (names.size === 0) return;
  if (!allowed) {
    throw conflict(
      `${nameRecord(row.name, at)} is linked by ${[...names].sort().join(", ")}: unlink first, or delete it with { unlink: true }`,
      { type: row.name, key: at.key, relations: linked.length + made.length },
    );
  }
  for (const change of made) change.body = null;
  for (const { name, key, from, to, instance } of linked) {
    const type = unit.room.definitions.get(name) ?? (await storedDefinition(txReader(tx), name));
    await unit.set(type, await unit.typeOf(type), { key, ends: { from, to, instance } }, null);
  }
}

/** Writes a past document again, as a new version. */
export async function writeAgain(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  body: string,
  options: WriteOptions,
): Promise<Written> {
  const document = await checkDocument(type, parse(body));
  if (type.kind === "relation" && at.ends !== null) return link(unit, type, at.ends, document, options);
  return putAt(unit, type, at, document, options);
}

export function noRecord(type: string, at: RecordKey): DaybookError {
  return notFound(`there is no ${nameRecord(type, at)}`, { type, key: at.ends ?? at.key });
}

function refuseMoved(type: AnyRecordType, at: RecordKey, document: Document): void {
  if (keyOfChanged(type, at, document).key === at.key) return;
  throw invalid(`patch would give ${nameRecord(type.name, at)} another key: put the new one and delete the old`);
}

function withoutUndefined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function written({ key, ends, revision }: Change): Written {
  return { key: ends ?? key, revision, changed: true };
}

function parse(body: string): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}
