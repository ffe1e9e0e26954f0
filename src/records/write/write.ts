// The verbs that write. Each looks at what the unit sees, checks its conditions, and changes the unit; nothing reaches
// the book before the unit ends.
import { DaybookError, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { sql } from "../../storage/sql.ts";
import { checkDocument, keyOfDocument, keyOfLink, nameRecord, recordKey } from "../define/record-key.ts";
import type { Document, RecordKey } from "../define/record-key.ts";
import type { AnyEntity, AnyRecordType, AnyRelation, RelationKey } from "../define/definition.ts";
import { txReader } from "../record-reader.ts";
import { storedDefinition } from "../define/stored-type.ts";
import { type WriteOptions, checkPreconditions } from "./precondition.ts";
import type { Change, RecordUnit } from "./record-unit.ts";
import type { WritableType } from "../define/record-type.ts";

/** What a write made of a record. */
export type Written = { readonly key: string | RelationKey; readonly revision: number; readonly changed: boolean };

export function put(unit: RecordUnit, type: AnyEntity, document: Document, options: WriteOptions): Promise<Written> {
  return putAt(unit, type, keyOfDocument(type, document), document, options);
}

/** The same where the key is known already. */
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
  return ensureAt(unit, type, row, at, document, options);
}

async function ensureAt(
  unit: RecordUnit,
  type: AnyRecordType,
  row: WritableType,
  at: RecordKey,
  document: Document,
  options: WriteOptions,
): Promise<Written> {
  const state = await unit.stateOf(row, at);
  if (state !== undefined && canonical(state.body) === document.body) {
    const { ifRevision: _revision, ifAbsent: _absent, ...rest } = options;
    // What is wanted holds; of the conditions only the one about the whole book is left to ask.
    await checkPreconditions(unit, type.name, at, state, state.commit === null ? {} : rest);
    return { key: at.ends ?? at.key, revision: state.revision, changed: false };
  }
  await checkPreconditions(unit, type.name, at, state, options);
  return written(await unit.set(type, row, at, document.body));
}

/** Lays the given fields over the document; one that is given as undefined is removed. */
export async function patch(
  unit: RecordUnit,
  type: AnyRecordType,
  key: string | RelationKey,
  fields: object,
  options: WriteOptions,
): Promise<Written> {
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    throw invalid(`patch of "${type.name}" takes an object with the fields to change`);
  }
  const row = await unit.typeOf(type);
  const at = recordKey(type, key);
  const state = await unit.stateOf(row, at);
  await checkPreconditions(unit, type.name, at, state, options);
  if (state === undefined) throw notFound(type.name, at);
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
    throw new DaybookError(
      "not_found",
      `${nameRecord(type.name, at)} needs its ${type[side].name} ${JSON.stringify(ends[side])}, which does not exist: put it first`,
      { details: { type: type.name, side, key: ends[side] } },
    );
  }
  await checkPreconditions(unit, type.name, at, await unit.stateOf(row, at), options);
  return written(await unit.set(type, row, at, document.body));
}

export type DeleteOptions = WriteOptions & {
  /** True: relations of the entity are unlinked in the same commit, instead of keeping it from being deleted. */
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

type LinkRow = { seq: number; key: string; name: string; from_key: string; to_key: string; instance_key: string };

/** A relation never points at nothing: an entity that is linked is deleted together with its relations, or not at all. */
async function unlinkAll(unit: RecordUnit, row: WritableType, at: RecordKey, allowed: boolean): Promise<void> {
  const { tx } = unit;
  const rows = await tx.all<LinkRow & { type_seq: number }>(sql`
    select record.type_seq, record.key, record_type.name, from_key, to_key, instance_key
    from daybook_record record join daybook_record_type record_type on record_type.seq = record.type_seq
    where record.tenant_id = ${tx.tenant} and record.from_type_seq = ${row.seq} and from_key = ${at.key}
    union select record.type_seq, record.key, record_type.name, from_key, to_key, instance_key
    from daybook_record record join daybook_record_type record_type on record_type.seq = record.type_seq
    where record.tenant_id = ${tx.tenant} and record.to_type_seq = ${row.seq} and to_key = ${at.key}`);
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
    throw new DaybookError(
      "conflict",
      `${nameRecord(row.name, at)} is linked by ${[...names].sort().join(", ")}: unlink first, or delete it with { unlink: true }`,
      { details: { type: row.name, key: at.key, relations: linked.length + made.length } },
    );
  }
  for (const change of made) change.body = null;
  for (const each of linked) {
    const type = unit.room.definitions.get(each.name) ?? (await storedDefinition(txReader(tx), each.name));
    const ends = { from: each.from_key, to: each.to_key, instance: each.instance_key };
    await unit.set(type, await unit.typeOf(type), { key: each.key, ends }, null);
  }
}

/** Writes a document of the past again, as a new version. */
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

export function notFound(type: string, at: RecordKey): DaybookError {
  return new DaybookError("not_found", `there is no ${nameRecord(type, at)}`, {
    details: { type, key: at.ends ?? at.key },
  });
}

function refuseMoved(type: AnyRecordType, at: RecordKey, document: Document): void {
  const now =
    type.kind === "entity"
      ? keyOfDocument(type, document)
      : keyOfLink(type, at.ends?.from ?? "", at.ends?.to ?? "", document);
  if (now.key === at.key) return;
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

// PostgreSQL keeps JSON in a form of its own and spells it in another way.
function canonical(body: string): string {
  return toJson(JSON.parse(body));
}
