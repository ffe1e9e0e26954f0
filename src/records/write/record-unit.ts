// The records of one transaction. A unit keeps its changes here until its end and then writes them as one commit, so that on
// PostgreSQL it holds the commit counter for one round trip, however long the unit takes. Reads inside the unit look here first.
import type { Cause } from "../../core/cause.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { asText, rowSet, seekEach } from "../../storage/word.ts";
import { readHead, type CommitNotes } from "../commit.ts";
import type { AnyRecordType } from "../define/definition.ts";
import type { RecordKey } from "../define/record-key.ts";
import { registerType, type WritableType } from "../define/record-type.ts";
import type { ChangeKind, RecordRoom } from "../room.ts";

/** What the unit does to one key; its last write of that key counts. */
export type Change = RecordKey & {
  readonly type: AnyRecordType;
  readonly row: WritableType;
  /** The live row when the unit began. */
  readonly before: LiveRow | undefined;
  /** Null: the record is deleted. */
  body: string | null;
  readonly revision: number;
};

export const rowColumns = {
  type_seq: "integer",
  key: "text",
  from_type_seq: "integer",
  from_key: "text",
  to_type_seq: "integer",
  to_key: "text",
  instance_key: "text",
  body: "text",
  revision: "integer",
  schema_version: "integer",
} as const;

/** One change, ready for the tables. */
export type ChangeRow = Readonly<Record<keyof typeof rowColumns, string | number | null>> & {
  readonly change: Change;
  readonly kind: ChangeKind;
  /** The live row; null while there is none. */
  readonly seq: number | null;
  readonly revision: number;
};

export function toRow(change: Change): ChangeRow {
  const { before, body, key, ends, row, revision } = change;
  return {
    change,
    kind: before === undefined ? "created" : body === null ? "deleted" : "updated",
    seq: before?.seq ?? null,
    type_seq: row.seq,
    key,
    from_type_seq: row.from_type_seq,
    from_key: ends?.from ?? null,
    to_type_seq: row.to_type_seq,
    to_key: ends?.to ?? null,
    instance_key: ends?.instance ?? null,
    body,
    // A deletion carries the revision that it ended.
    revision: body === null ? (before?.revision ?? revision) : revision,
    schema_version: row.schemaVersion,
  };
}

/** A record as the unit sees it; `commit` is null when the unit itself wrote it. */
export type State = { readonly body: string; readonly revision: number; readonly commit: number | null };

export type RecordUnit = {
  readonly tx: Tx;
  readonly room: RecordRoom;
  /** The run that began the unit. */
  readonly cause: Cause | undefined;
  readonly changes: Map<string, Change>;
  notes: CommitNotes;
  typeOf(type: AnyRecordType): Promise<WritableType>;
  /** Reads many keys at once, before they are written. */
  prefetch(type: AnyRecordType, keys: readonly string[]): Promise<void>;
  stateOf(type: AnyRecordType, at: RecordKey): Promise<State | undefined>;
  set(type: AnyRecordType, at: RecordKey, body: string | null): Promise<Change>;
  head(): Promise<number | null>;
};

function unitsOf({ keep }: Tx): WeakMap<Tx, RecordUnit> {
  return keep("record units", () => new WeakMap());
}

/** The unit of a transaction, made when the transaction first uses records. */
export function recordUnit(tx: Tx, room: RecordRoom, cause = room.cause()): RecordUnit {
  const units = unitsOf(tx);
  let unit = units.get(tx);
  if (unit === undefined) units.set(tx, (unit = createUnit(tx, room, cause)));
  return unit;
}

export function recordUnitOf(tx: Tx): RecordUnit | undefined {
  return unitsOf(tx).get(tx);
}

/** What the units of one transaction have read together. */
export type SharedSight = { readonly types: Map<AnyRecordType, WritableType>; readonly seen: Map<string, Current> };

/** A separate unit. Several units in one transaction make several commits and must not touch the same key. */
export function createUnit(
  tx: Tx,
  room: RecordRoom,
  cause: Cause | undefined,
  { types, seen }: SharedSight = { types: new Map(), seen: new Map() },
): RecordUnit {
  const changes = new Map<string, Change>();
  const reader = { tenant: tx.tenant, point: <R>(statement: Sql) => tx.all<R>(statement) };
  let head: Promise<number | null> | undefined;

  async function current(row: WritableType, key: string): Promise<Current> {
    const id = idOf(row.seq, key);
    let found = seen.get(id);
    if (found === undefined) seen.set(id, (found = await readCurrent(tx, row.seq, key)));
    return found;
  }

  async function typeOf(type: AnyRecordType): Promise<WritableType> {
    if (type.stored !== undefined) {
      if (type.stored.tenant === tx.tenant) return type.stored;
      throw invalid(
        `this definition of "${type.name}" was read as tenant "${type.stored.tenant}": read it as "${tx.tenant}" to write there`,
      );
    }
    let row = types.get(type);
    if (row !== undefined) return row;
    const known = room.definitions.get(type.name);
    if (known !== undefined && known !== type) {
      throw invalid(`"${type.name}" is not the definition of that name in "use": use one of them everywhere`);
    }
    types.set(type, (row = await registerType(tx, type)));
    return row;
  }

  return {
    tx,
    room,
    cause,
    changes,
    notes: {},
    typeOf,
    async prefetch(type, keys) {
      const { seq } = await typeOf(type);
      const unseen = keys.filter((key) => !seen.has(idOf(seq, key)));
      for (const [key, each] of await readCurrents(tx, seq, unseen)) seen.set(idOf(seq, key), each);
    },
    async stateOf(type, { key }) {
      const row = await typeOf(type);
      const change = changes.get(idOf(row.seq, key));
      if (change === undefined) return (await current(row, key)).live;
      return change.body === null ? undefined : { body: change.body, revision: change.revision, commit: null };
    },
    async set(type, at, body) {
      const row = await typeOf(type);
      const id = idOf(row.seq, at.key);
      let change = changes.get(id);
      if (change === undefined) {
        const { live, last } = await current(row, at.key);
        if (changes.size >= limits.commitChangesMax) {
          throw invalid(`one commit changes more than ${limits.commitChangesMax} records: split it into several`);
        }
        changes.set(id, (change = { ...at, type, row, before: live, body, revision: last + 1 }));
      }
      change.body = body;
      return change;
    },
    head: () => (head ??= readHead(reader).then(({ commit }) => commit)),
  };
}

function idOf(typeSeq: number, key: string): string {
  return `${typeSeq} ${key}`;
}

/** A live row, read by the transaction that will write it. */
export type LiveRow = State & { readonly seq: number };

/** `last`: the newest revision that the key ever had, so that a record that is made again continues its count. */
export type Current = { readonly live: LiveRow | undefined; readonly last: number };

type Found = LiveRow & { readonly live: number; readonly key: string };

async function readCurrent(tx: Tx, typeSeq: number, key: string): Promise<Current> {
  const rows = await tx.all<Found>(sql`
    select 1 as live, seq, body${asText} as body, revision, from_commit as "commit" from daybook_record
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key}
    union all select * from (select 0, seq, '', revision, from_commit from daybook_record_version
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key} order by from_commit desc limit 1) as past`);
  return toCurrent(rows);
}

/** The same for many keys, each by a seek: what a batch costs must not grow with the table. */
async function readCurrents(tx: Tx, typeSeq: number, keys: readonly string[]): Promise<Map<string, Current>> {
  const wanted = keys.map((key) => ({ key }));
  const asked = (): Sql => sql`${rowSet("asked", { key: "text" }, wanted)}`;
  const mine = (table: string): Sql => sql`${rawSql(table)}.tenant_id = ${tx.tenant}
    and ${rawSql(table)}.type_seq = ${typeSeq} and ${rawSql(table)}.key = asked.key`;
  const rows = await tx.all<Found>(sql`
    select asked.key, 1 as live, record.seq, record.body${asText} as body, record.revision, record.from_commit as "commit"
      from ${asked()} ${seekEach("record", mine("record"))}
    union all select asked.key, 0, 0, '', coalesce((select past.revision from daybook_record_version as past
        where ${mine("past")} order by past.from_commit desc limit 1), 0), 0
      from ${asked()}`);
  const found = Map.groupBy(rows, (row) => row.key);
  return new Map(keys.map((key) => [key, toCurrent(found.get(key) ?? [])]));
}

function toCurrent(rows: readonly Found[]): Current {
  return { live: rows.find((row) => row.live === 1), last: Math.max(0, ...rows.map((row) => row.revision)) };
}
