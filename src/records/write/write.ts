// The verbs that write. Each reads what the unit sees, checks its conditions and changes the unit. Nothing reaches the book
// before the unit ends.
import { conflict, invalid, notFound } from "../../core/error.ts";
import { isObject, toJson } from "../../core/json.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { inSlices, pace } from "../../storage/slices.ts";
import { sql } from "../../storage/sql.ts";
import { addNotes, momentOf, noteNames, type AsOf, type CommitNotes } from "../commit.ts";
import type { AnyEntity, AnyRecordType, RelationKey } from "../define/definition.ts";
import { checkDocument, keyOf, nameRecord, noRecord } from "../define/record-key.ts";
import type { Document, Ends, RecordKey } from "../define/record-key.ts";
import { storedDefinition } from "../define/record-type.ts";
import { readRow } from "../entry.ts";
import { txReader } from "../record-reader.ts";
import type { RecordUnit, State } from "./record-unit.ts";

export type WriteOptions = CommitNotes & {
  /** Only if this is still its revision. */
  readonly ifRevision?: number;
  /** Only if there is no such record. */
  readonly ifAbsent?: boolean;
  /** Only if this is still the last commit; null: only if there is none. */
  readonly ifHead?: number | null;
};

const optionNames = [...noteNames, "ifRevision", "ifAbsent", "ifHead"];

export function checkWriteOptions(options: WriteOptions, verb: string, more: readonly string[] = []): void {
  refuseUnknown(options, [...optionNames, ...more], verb);
  const { ifRevision, ifAbsent, ifHead } = options;
  if (ifRevision !== undefined && !(Number.isSafeInteger(ifRevision) && ifRevision >= 1)) {
    throw invalid(`ifRevision ${String(ifRevision)} is no revision: they count from 1; use ifAbsent for a new record`);
  }
  if (ifHead !== undefined && ifHead !== null && !(Number.isSafeInteger(ifHead) && ifHead >= 1)) {
    throw invalid(`ifHead ${String(ifHead)} is no commit: they count from 1; use null for an empty book`);
  }
  if (ifAbsent === true && ifRevision !== undefined) throw invalid("ifAbsent and ifRevision cannot both hold");
}

/** The record after a write; `changed` is false when the write made no version. */
export type Written = { readonly key: string | RelationKey; readonly revision: number; readonly changed: boolean };

/** Puts a document under its key. A relation needs both of its entities. */
export async function put(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  document: Document,
  options: WriteOptions,
): Promise<Written> {
  if (type.kind === "relation" && at.ends !== null) {
    for (const side of ["from", "to"] as const) {
      const key = at.ends[side];
      if ((await unit.stateOf(type[side], { key, ends: null })) !== undefined) continue;
      throw notFound(
        `${nameRecord(type.name, at)} needs its ${type[side].name} ${JSON.stringify(key)}, which does not exist: put it first`,
        { type: type.name, side, key },
      );
    }
  }
  await checkPreconditions(unit, type, at, options);
  const { revision } = await unit.set(type, at, document.body);
  return { key: at.ends ?? at.key, revision, changed: true };
}

/** Puts documents under the keys that they give, in their order; the last of a key counts. What is there is read at once. */
export async function putMany(
  unit: RecordUnit,
  type: AnyEntity,
  places: readonly { readonly at: RecordKey; readonly document: Document }[],
  options: WriteOptions,
): Promise<Written[]> {
  if (places.length === 0) return [];
  const keys = places.map(({ at }) => at.key);
  const row = await unit.prefetch(type, keys, "without documents");
  unit.notes = addNotes(unit.notes, options);
  if (options.ifHead !== undefined) checkHead(await unit.head(), options.ifHead);
  return places.map(({ at, document }) => {
    const { revision } = unit.setSeen(type, row, at, document.body);
    return { key: at.key, revision, changed: true };
  });
}

/** Like put, but a document that is the same already makes no version. */
export async function ensure(
  unit: RecordUnit,
  type: AnyEntity,
  at: RecordKey,
  document: Document,
  options: WriteOptions,
): Promise<Written> {
  const state = await unit.stateOf(type, at);
  // PostgreSQL stores JSON in its own form and spells it differently.
  if (state === undefined || toJson(JSON.parse(state.body)) !== document.body) {
    return put(unit, type, at, document, options);
  }
  const { ifRevision: _revision, ifAbsent: _absent, ...rest } = options;
  // The record is as wanted, so only the condition about the whole book is left to check.
  await checkPreconditions(unit, type, at, state.commit === null ? {} : rest);
  return { key: at.key, revision: state.revision, changed: false };
}

/** Lays the given fields over the document; a field that is given as undefined is removed. */
export async function patch(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  fields: object,
  options: WriteOptions,
): Promise<Written> {
  if (!isObject(fields)) throw invalid(`patch of "${type.name}" takes an object with the fields to change`);
  const state = await checkPreconditions(unit, type, at, options);
  if (state === undefined) throw noRecord(type.name, at);
  const value = JSON.parse(state.body) as Fields;
  // To read a large document, and to check it and write it, take the loop about as long.
  await pace()(state.body);
  layOver(value, fields);
  const document = await checkDocument(type, value);
  if (keyOf(type, document, at.ends).key !== at.key) {
    throw invalid(`patch would give ${nameRecord(type.name, at)} another key: put the new one and delete the old`);
  }
  const { revision } = await unit.set(type, at, document.body);
  return { key: at.ends ?? at.key, revision, changed: true };
}

type Fields = Record<string, unknown>;

/** Changes `value`: a large document would take as long to copy as to write. */
function layOver(value: Fields, fields: Fields): void {
  for (const [name, field] of Object.entries(fields)) {
    if (field === undefined) delete value[name];
    // Plain assignment of this one name would change the prototype instead.
    else if (name === "__proto__") Object.defineProperty(value, name, { value: field, ...ordinary });
    else value[name] = field;
  }
}

const ordinary = { writable: true, enumerable: true, configurable: true } as const;

/** Writes the document of a past moment again, as a new version. */
export async function restore(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  asOf: AsOf,
  options: WriteOptions,
): Promise<Written> {
  const reader = txReader(unit.tx);
  const row = await readRow(reader, type.name, at, (await momentOf(reader, asOf)) ?? 0);
  if (row === undefined) throw noRecord(type.name, at);
  const document = await checkDocument(type, JSON.parse(row.body));
  return put(unit, type, type.kind === "entity" ? at : keyOf(type, document, at.ends), document, options);
}

export type DeleteOptions = WriteOptions & {
  /** True: unlinks the entity's relations in the same commit. Otherwise they keep it from being deleted. */
  readonly unlink?: boolean;
};

/** Whether there was something to delete. */
export async function remove(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  options: DeleteOptions,
): Promise<boolean> {
  const state = await checkPreconditions(unit, type, at, options);
  if (state === undefined) return false;
  if (type.kind === "entity") await unlinkAll(unit, type, at, options.unlink === true);
  await unit.set(type, at, null);
  return true;
}

type LinkRow = Ends & { readonly type_seq: number; readonly key: string; readonly name: string };

/** A relation never points at nothing: an entity that has relations is deleted together with them, or not at all. */
async function unlinkAll(unit: RecordUnit, entity: AnyEntity, at: RecordKey, allowed: boolean): Promise<void> {
  const { tx } = unit;
  const row = await unit.typeOf(entity);
  const links = sql`select record.type_seq, record.key, record_type.name, from_key as "from", to_key as "to",
      instance_key as "instance"
    from daybook_record record join daybook_record_type record_type on record_type.seq = record.type_seq`;
  const rows = await tx.all<LinkRow>(sql`
    ${links} where record.tenant_id = ${tx.tenant} and record.from_type_seq = ${row.seq} and from_key = ${at.key}
    union ${links} where record.tenant_id = ${tx.tenant} and record.to_type_seq = ${row.seq} and to_key = ${at.key}`);
  // Those that the unit itself changed are among the made ones, or gone.
  const linked = rows.filter((each) => unit.changeOf(each.type_seq, each.key) === undefined);
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
  const types = new Map<string, AnyRecordType>();
  for (const { name } of linked) {
    if (types.has(name)) continue;
    types.set(name, unit.room.definitions.get(name) ?? (await storedDefinition(txReader(tx), name)));
  }
  for (const [name, type] of types) {
    await inSlices(
      linked.filter((each) => each.name === name),
      async (slice) => {
        await unit.prefetch(
          type,
          slice.map(({ key }) => key),
          "without documents",
        );
        for (const { key, from, to, instance } of slice)
          await unit.set(type, { key, ends: { from, to, instance } }, null);
      },
    );
  }
}

/** The record that the unit sees. Throws `conflict` unless the conditions hold for it, with the current state, so that the caller can
 *  decide. */
async function checkPreconditions(
  unit: RecordUnit,
  type: AnyRecordType,
  at: RecordKey,
  options: WriteOptions,
): Promise<State | undefined> {
  const { ifRevision, ifAbsent, ifHead } = options;
  const state = await unit.stateOf(type, at);
  unit.notes = addNotes(unit.notes, options);
  const unmet = (): Record<string, unknown> => {
    const current = state === undefined ? null : { revision: state.revision, commit: state.commit };
    return { type: type.name, key: at.ends ?? at.key, current };
  };
  if (ifAbsent === true && state !== undefined) {
    const name = nameRecord(type.name, at);
    throw conflict(`${name} exists, at revision ${state.revision}: read it, then decide`, unmet());
  }
  if (ifRevision !== undefined && state?.revision !== ifRevision) {
    const name = nameRecord(type.name, at);
    const now = state === undefined ? "there is none now" : `it is at revision ${state.revision} now`;
    throw conflict(`${name} was expected at revision ${ifRevision}, but ${now}: read it, then decide`, unmet());
  }
  if (ifHead !== undefined) checkHead(await unit.head(), ifHead);
  return state;
}

export function checkHead(head: number | null, expected: number | null): void {
  if (head === expected) return;
  throw conflict(
    `the last commit was expected to be ${expected ?? "none"}, but it is ${head ?? "none"}: read again, then decide`,
    { expected, head },
  );
}
