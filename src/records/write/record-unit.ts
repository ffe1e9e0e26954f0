// The records of one transaction. A unit keeps its changes here until its end and then writes them as one commit, so that on
// PostgreSQL it holds the commit counter for one round trip, however long the unit takes. Reads inside the unit look here first.
import type { Cause } from "../../core/cause.ts";
import { invalid, type DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { asText, rowSet, seekEach } from "../../storage/word.ts";
import type { CommitNotes } from "../commit.ts";
import type { AnyRecordType } from "../define/definition.ts";
import type { RecordKey } from "../define/record-key.ts";
import { registerType, type WritableType } from "../define/record-type.ts";
import type { RecordRoom } from "../room.ts";

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
  prefetch(row: WritableType, keys: readonly string[]): Promise<void>;
  stateOf(row: WritableType, at: RecordKey): Promise<State | undefined>;
  set(type: AnyRecordType, row: WritableType, at: RecordKey, body: string | null): Promise<Change>;
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
  let head: number | null | undefined;

  async function current(row: WritableType, key: string): Promise<Current> {
    const id = idOf(row.seq, key);
    let found = seen.get(id);
    if (found === undefined) seen.set(id, (found = await readCurrent(tx, row.seq, key)));
    return found;
  }

  return {
    tx,
    room,
    cause,
    changes,
    notes: {},
    async typeOf(type) {
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
    },
    async prefetch(row, keys) {
      const found = await readCurrents(
        tx,
        row.seq,
        keys.filter((key) => !seen.has(idOf(row.seq, key))),
      );
      for (const [key, each] of found) seen.set(idOf(row.seq, key), each);
    },
    async stateOf(row, { key }) {
      const change = changes.get(idOf(row.seq, key));
      if (change !== undefined) {
        return change.body === null ? undefined : { body: change.body, revision: change.revision, commit: null };
      }
      const { live } = await current(row, key);
      return live && { body: live.body, revision: live.revision, commit: live.from_commit };
    },
    async set(type, row, at, body) {
      const id = idOf(row.seq, at.key);
      let change = changes.get(id);
      if (change === undefined) {
        const { live, last } = await current(row, at.key);
        if (changes.size >= limits.commitChangesMax) throw tooMany();
        changes.set(id, (change = { ...at, type, row, before: live, body, revision: last + 1 }));
      }
      change.body = body;
      return change;
    },
    async head() {
      if (head !== undefined) return head;
      const row = await tx.get<{ commit_id: number }>(
        sql`select commit_id from daybook_record_head where tenant_id = ${tx.tenant}`,
      );
      return (head = row === undefined || row.commit_id === 0 ? null : row.commit_id);
    },
  };
}

function idOf(typeSeq: number, key: string): string {
  return `${typeSeq} ${key}`;
}

function tooMany(): DaybookError {
  return invalid(`one commit changes more than ${limits.commitChangesMax} records: split it into several`);
}

/** A live row, read by the transaction that will write it. */
export type LiveRow = {
  readonly seq: number;
  readonly body: string;
  readonly revision: number;
  readonly from_commit: number;
};

/** `last`: the newest revision that the key ever had, so that a record that is made again continues its count. */
export type Current = { readonly live: LiveRow | undefined; readonly last: number };

type Found = Omit<LiveRow, "revision"> & {
  readonly live: number;
  readonly key: string;
  /** Null when no version of the key was ever closed. */
  readonly revision: number | null;
};

export async function readCurrent(tx: Tx, typeSeq: number, key: string): Promise<Current> {
  const rows = await tx.all<Found>(sql`
    select 1 as live, seq, body${asText} as body, revision, from_commit from daybook_record
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key}
    union all select * from (select 0, seq, '', revision, from_commit from daybook_record_version
      where tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key} order by from_commit desc limit 1) as past`);
  return toCurrent(rows);
}

/** The same for many keys, each by a seek: what a batch costs must not grow with the table. */
export async function readCurrents(tx: Tx, typeSeq: number, keys: readonly string[]): Promise<Map<string, Current>> {
  const wanted = keys.map((key) => ({ key }));
  const asked = (): Sql => sql`${rowSet("asked", { key: "text" }, wanted)}`;
  const mine = (table: string): Sql => sql`${rawSql(table)}.tenant_id = ${tx.tenant}
    and ${rawSql(table)}.type_seq = ${typeSeq} and ${rawSql(table)}.key = asked.key`;
  const rows = await tx.all<Found>(sql`
    select asked.key, 1 as live, record.seq, record.body${asText} as body, record.revision, record.from_commit
      from ${asked()} ${seekEach("record", mine("record"))}
    union all select asked.key, 0, 0, '', (select past.revision from daybook_record_version as past where ${mine("past")}
        order by past.from_commit desc limit 1), 0
      from ${asked()}`);
  const found = Map.groupBy(rows, (row) => row.key);
  return new Map(keys.map((key) => [key, toCurrent(found.get(key) ?? [])]));
}

function toCurrent(rows: readonly Found[]): Current {
  const live = rows.find((row): row is Found & LiveRow => row.live === 1);
  return { live, last: Math.max(0, ...rows.map((row) => row.revision ?? 0)) };
}
