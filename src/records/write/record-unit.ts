// The records of one transaction. A unit keeps its changes here until its end and then writes them as one commit, so that on
// PostgreSQL it holds the commit counter for one round trip, however long the unit takes. Reads inside the unit look here first.
import type { Cause } from "../../core/cause.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { arrayOf, asText, seekEach } from "../../storage/word.ts";
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
  /** What of it stands in the tables before its unit has ended. */
  written?: { readonly body: string | null } | undefined;
};

export function kindOf({ before, body }: Change): ChangeKind {
  return before === undefined ? "created" : body === null ? "deleted" : "updated";
}

/** The revision that a change states: a deletion carries the one that it ended. */
export function statedRevision({ before, body, revision }: Change): number {
  return body === null ? (before?.revision ?? revision) : revision;
}

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
  readonly kind: ChangeKind;
  /** The live row; null while there is none. */
  readonly seq: number | null;
  readonly revision: number;
};

export function toRow(change: Change): ChangeRow {
  const { before, body, key, ends, row } = change;
  return {
    kind: kindOf(change),
    seq: before?.seq ?? null,
    type_seq: row.seq,
    key,
    from_type_seq: row.from_type_seq,
    from_key: ends?.from ?? null,
    to_type_seq: row.to_type_seq,
    to_key: ends?.to ?? null,
    instance_key: ends?.instance ?? null,
    body,
    revision: statedRevision(change),
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
  readonly changes: Map<Current, Change>;
  notes: CommitNotes;
  /** When its commit was made, if that was not now. */
  madeAt?: number;
  /** Its commit, where that was begun before the unit has ended, and how many changes were written to it. */
  ahead?: { readonly commit: number; readonly positions: number };
  /** The last write ahead of the end; rejected, it fails the unit, because part of it may be in the tables. */
  showing?: Promise<void>;
  typeOf(type: AnyRecordType): Promise<WritableType>;
  /** Reads many keys at once, before they are written; `whole`: with their documents. */
  prefetch(type: AnyRecordType, keys: readonly string[], how: "whole" | "without documents"): Promise<WritableType>;
  stateOf(type: AnyRecordType, at: RecordKey): Promise<State | undefined>;
  /** What the unit does to a key, if it does anything. */
  changeOf(typeSeq: number, key: string): Change | undefined;
  set(type: AnyRecordType, at: RecordKey, body: string | null): Promise<Change>;
  /** The same of a key that was prefetched: a hundred waits for nothing show. */
  setSeen(type: AnyRecordType, row: WritableType, at: RecordKey, body: string): Change;
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

/** What the units of one transaction have read together: types, and keys by the number of their type. */
export type SharedSight = {
  readonly types: Map<AnyRecordType, WritableType>;
  readonly seen: Map<number, Map<string, Current>>;
};

/** A separate unit. Several units in one transaction make several commits and must not touch the same key. */
export function createUnit(
  tx: Tx,
  room: RecordRoom,
  cause: Cause | undefined,
  { types, seen }: SharedSight = { types: new Map(), seen: new Map() },
): RecordUnit {
  const changes = new Map<Current, Change>();
  const reader = { tenant: tx.tenant, point: <R>(statement: Sql) => tx.all<R>(statement) };
  let head: Promise<number | null> | undefined;

  function seenOf(typeSeq: number): Map<string, Current> {
    const known = seen.get(typeSeq);
    if (known !== undefined) return known;
    const fresh = new Map<string, Current>();
    seen.set(typeSeq, fresh);
    return fresh;
  }

  async function current(row: WritableType, key: string): Promise<Current> {
    const ofType = seenOf(row.seq);
    let found = ofType.get(key);
    if (found === undefined) ofType.set(key, (found = await readCurrent(tx, row.seq, key)));
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

  function setOver(was: Current, type: AnyRecordType, row: WritableType, at: RecordKey, body: string | null): Change {
    let change = changes.get(was);
    if (change === undefined) {
      if (changes.size >= limits.commitChangesMax) {
        throw invalid(`one commit changes more than ${limits.commitChangesMax} records: split it into several`);
      }
      change = { key: at.key, ends: at.ends, type, row, before: was.live, body, revision: was.last + 1 };
      changes.set(was, change);
    }
    change.body = body;
    return change;
  }

  return {
    tx,
    room,
    cause,
    changes,
    notes: {},
    typeOf,
    async prefetch(type, keys, how) {
      const row = await typeOf(type);
      const ofType = seenOf(row.seq);
      const unseen = ofType.size === 0 ? keys : keys.filter((key) => !ofType.has(key));
      if (unseen.length > 0) await readCurrents(tx, row.seq, unseen, how, ofType);
      return row;
    },
    async stateOf(type, { key }) {
      const row = await typeOf(type);
      const was = await current(row, key);
      const change = changes.get(was);
      if (change !== undefined) {
        return change.body === null ? undefined : { body: change.body, revision: change.revision, commit: null };
      }
      if (was.live === undefined) return undefined;
      const { revision, commit } = was.live;
      return { body: (was.live.body ??= (await readCurrent(tx, row.seq, key)).live?.body) ?? "", revision, commit };
    },
    changeOf(typeSeq, key) {
      const was = seen.get(typeSeq)?.get(key);
      return was && changes.get(was);
    },
    async set(type, at, body) {
      const row = await typeOf(type);
      return setOver(await current(row, at.key), type, row, at, body);
    },
    setSeen: (type, row, at, body) => setOver(seenOf(row.seq).get(at.key) as Current, type, row, at, body),
    head: () => (head ??= readHead(reader).then(({ commit }) => commit)),
  };
}

/** A live row, read by the transaction that will write it; a document that nobody asked for is left out. */
export type LiveRow = {
  readonly seq: number;
  readonly revision: number;
  readonly commit: number;
  body?: string | undefined;
};

/** `last`: the newest revision that the key ever had, so that a record that is made again continues its count. */
export type Current = { readonly live: LiveRow | undefined; readonly last: number };

async function readCurrent(tx: Tx, typeSeq: number, key: string): Promise<Current> {
  const mine = sql`tenant_id = ${tx.tenant} and type_seq = ${typeSeq} and key = ${key}`;
  const rows = await tx.all<LiveRow & { readonly live: number }>(sql`
    select 1 as live, seq, body${asText} as body, revision, from_commit as "commit" from daybook_record where ${mine}
    union all select * from (select 0, seq, '', revision, from_commit from daybook_record_version
      where ${mine} order by from_commit desc limit 1) as past`);
  const live = rows.find((row) => row.live === 1);
  return { live, last: Math.max(0, ...rows.map((row) => row.revision)) };
}

/** The same for many keys, each by a seek: what a batch costs must not grow with the table. */
async function readCurrents(
  tx: Tx,
  typeSeq: number,
  keys: readonly string[],
  how: "whole" | "without documents",
  seen: Map<string, Current>,
): Promise<void> {
  const mine = (table: string): Sql => sql`${rawSql(table)}.tenant_id = ${tx.tenant}
    and ${rawSql(table)}.type_seq = ${typeSeq} and ${rawSql(table)}.key = asked.key`;
  const body = how === "whole" ? sql`, record.body${asText} as body` : sql``;
  const readLive = (): Awaitable<(LiveRow & { readonly key: string })[]> =>
    tx.all(sql`select record.key, record.seq, record.revision, record.from_commit as "commit" ${body}
      from ${keyList(tx, keys)} ${seekEach("record", mine("record"))}`);
  const readLast = (wanted: readonly string[]): Awaitable<{ key: string; last: number | null }[]> =>
    tx.all(sql`select asked.key, (select past.revision from daybook_record_version as past
      where ${mine("past")} order by past.from_commit desc limit 1) as last from ${keyList(tx, wanted)}`);
  // PostgreSQL is asked both at once, because a second question costs more than an answer that nobody needs.
  const [live, asked] =
    tx.dialect === "sqlite" ? [await readLive(), []] : await Promise.all([readLive(), readLast(keys)]);
  for (const row of live) seen.set(row.key, { live: row, last: row.revision });
  const absent = live.length === 0 ? keys : live.length === keys.length ? [] : keys.filter((key) => !seen.has(key));
  const last = tx.dialect === "sqlite" && absent.length > 0 ? await readLast(absent) : asked;
  for (const row of last) if (!seen.has(row.key)) seen.set(row.key, { live: undefined, last: row.last ?? 0 });
}

function keyList({ dialect }: Tx, keys: readonly string[]): Sql {
  if (dialect === "sqlite") return sql`(select value as key from json_each(${JSON.stringify(keys)})) as asked`;
  return sql`unnest(${arrayOf("text", keys)}) as asked(key)`;
}
