// The records of one transaction. What a unit writes is kept here and written to the book at its end, as one commit: on
// PostgreSQL the counter of commits is then held for one round trip, however long the unit takes. Reads inside the unit
// look here first.
import { invalid, type DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { CommitNotes } from "./commit-notes.ts";
import { readCurrent, readCurrents, type Current, type LiveRow } from "./current.ts";
import type { RecordKey } from "./record-key.ts";
import { registerType, type WritableType } from "./record-type.ts";
import type { AnyRecordType } from "./relation.ts";
import type { Cause } from "../core/cause.ts";
import type { RecordRoom } from "./room.ts";

/** What the unit makes of one key; the last write of a key is the one that counts. */
export type Change = RecordKey & {
  readonly type: AnyRecordType;
  readonly row: WritableType;
  /** As it was when the unit began. */
  readonly before: LiveRow | undefined;
  /** Null: it is gone. */
  body: string | null;
  readonly revision: number;
};

/** What a key holds as the unit sees it. */
export type State = { readonly body: string; readonly revision: number; readonly commit: number | null };

export type RecordUnit = {
  readonly tx: Tx;
  readonly room: RecordRoom;
  /** The run that made the unit. */
  readonly cause: Cause | undefined;
  readonly changes: Map<string, Change>;
  notes: CommitNotes;
  typeOf(type: AnyRecordType): Promise<WritableType>;
  /** Reads many keys at once, for those who are about to write them. */
  prefetch(row: WritableType, keys: readonly string[]): Promise<void>;
  stateOf(row: WritableType, at: RecordKey): Promise<State | undefined>;
  set(type: AnyRecordType, row: WritableType, at: RecordKey, body: string | null): Promise<Change>;
  head(): Promise<number | null>;
};

const units = new WeakMap<Tx, RecordUnit>();

/** The unit of a transaction; one is made when records are first used in it. */
export function recordUnit(tx: Tx, room: RecordRoom, cause = room.cause()): RecordUnit {
  let unit = units.get(tx);
  if (unit === undefined) units.set(tx, (unit = createUnit(tx, room, cause)));
  return unit;
}

export function recordUnitOf(tx: Tx): RecordUnit | undefined {
  return units.get(tx);
}

/** What units of one transaction know together. */
export type SharedSight = { readonly types: Map<AnyRecordType, WritableType>; readonly seen: Map<string, Current> };

/** A unit of its own: several in one transaction are several commits, and must not touch the same key. */
export function createUnit(
  tx: Tx,
  room: RecordRoom,
  cause: Cause | undefined,
  { types, seen }: SharedSight = { types: new Map(), seen: new Map() },
): RecordUnit {
  const changes = new Map<string, Change>();
  let head: number | null | undefined;

  async function current(row: WritableType, key: string): Promise<Current> {
    const place = placeOf(row.seq, key);
    let found = seen.get(place);
    if (found === undefined) seen.set(place, (found = await readCurrent(tx, row.seq, key)));
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
        keys.filter((key) => !seen.has(placeOf(row.seq, key))),
      );
      for (const [key, each] of found) seen.set(placeOf(row.seq, key), each);
    },
    async stateOf(row, { key }) {
      const change = changes.get(placeOf(row.seq, key));
      if (change !== undefined) {
        return change.body === null ? undefined : { body: change.body, revision: change.revision, commit: null };
      }
      const { live } = await current(row, key);
      return live && { body: live.body, revision: live.revision, commit: live.from_commit };
    },
    async set(type, row, at, body) {
      const place = placeOf(row.seq, at.key);
      let change = changes.get(place);
      if (change === undefined) {
        const { live, last } = await current(row, at.key);
        if (changes.size >= limits.commitChangesMax) throw tooMany();
        changes.set(place, (change = { ...at, type, row, before: live, body, revision: last + 1 }));
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

function placeOf(typeSeq: number, key: string): string {
  return `${typeSeq} ${key}`;
}

function tooMany(): DaybookError {
  return invalid(`one commit changes more than ${limits.commitChangesMax} records: split it into several`);
}
