// What a user's function gets from book.write and book.read: the verbs of the rooms, and `sql` for their own tables.
import { callVerbs, type CallVerbs } from "../calls/calls.ts";
import { calledFrom, DaybookError, invalid, isDaybookError, placeOf, type Place } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { remember, rememberFor } from "../core/remember.ts";
import type { ReadRows } from "../jobs/definition.ts";
import { groupVerbs, type GroupVerbs } from "../jobs/group/groups.ts";
import { jobVerbs, lookUp, type JobVerbs, type LookUp, type Within } from "../jobs/jobs.ts";
import { queueVerbs, type QueueVerbs } from "../jobs/queues.ts";
import { eventVerbs, type EventVerbs } from "../events/events.ts";
import { templateVerbs, type TemplateVerbs } from "../jobs/template/template.ts";
import { callsParts, type Rooms } from "../open/rooms.ts";
import { holdHead, recordsTurn } from "../records/write/flush.ts";
import { flushRecords, showRecords } from "../records/write/unit-end.ts";
import { recordReads, type RecordReads } from "../records/record-reads.ts";
import { snapshotReader, txReader } from "../records/record-reader.ts";
import { recordUnit } from "../records/write/record-unit.ts";
import { annotateCommit, recordVerbs, type TxRecordVerbs } from "../records/record-verbs.ts";
import { scheduleVerbs, type ScheduleVerbs } from "../schedules/schedules.ts";
import { checkValue, sql, Sql, type BuiltAnswer, type Dialect, type UserMark, type Value } from "../storage/sql.ts";
import type { Awaitable, Reader, Row, Tx } from "../storage/store.ts";
import { checkUserSql, notYours, quoteSql } from "../storage/user-sql.ts";
import { anyOf } from "../storage/word.ts";
import { refuseAlien, runUnit, wrapVerbs, type Origin, type Unit } from "../storage/unit.ts";

export type UserTx = {
  /** The tenant whose handle began the transaction. */
  readonly tenant: string;
  /** Epoch milliseconds; the same for everything in this transaction. */
  readonly now: number;
  /** Runs one statement of your own in this transaction, and resolves to its rows.
   *
   *  ```ts
   *  const [row] = await tx.sql<{ id: number }>`insert into note (body) values (${"hello"}) returning id`;
   *  ``` */
  sql<R extends object = Row>(strings: TemplateStringsArray, ...values: Value[]): Promise<R[]>;
  readonly jobs: JobVerbs;
  readonly groups: GroupVerbs;
  readonly schedules: ScheduleVerbs;
  readonly calls: CallVerbs;
  readonly events: EventVerbs;
  readonly queues: QueueVerbs;
  readonly templates: TemplateVerbs;
  readonly records: TxRecordVerbs & RecordReads;
};

export type ReadTx = Pick<UserTx, "tenant" | "sql"> & { readonly records: RecordReads };

/** Runs a user's function in a transaction; what it made of records becomes one commit at its end. */
export async function runUserUnit<T>(
  tx: Tx,
  rooms: Rooms,
  work: (tx: UserTx) => Awaitable<T>,
  origin: Origin = { joined: false },
): Promise<T> {
  const result = await runUnit(rooms.store, (unit) => work(userTx(tx, unit, rooms, origin)), origin);
  await flushRecords(tx);
  return result;
}

function userTx(tx: Tx, unit: Unit, rooms: Rooms, { joined }: Origin): UserTx {
  const read: ReadRows = (statement) => tx.all(statement);
  const within: Within = (work) => work(tx);
  const hosts = rooms.worker !== false;
  const known: LookUp = (wanted) => lookUp(rooms.jobs, wanted, { tenant: tx.tenant, strict: hosts, read });
  // A transaction of the user's own need not be serializable, so its writers of records take turns as the engine's do.
  let held: Promise<void> | undefined;
  const takeTurn = joined ? () => (held ??= holdHead(tx)) : undefined;
  const made: UserTx = {
    get jobs() {
      return tracked(unit, "jobs", jobVerbs(rooms.jobs, { tenant: tx.tenant, strict: hosts }, within, read));
    },
    get groups() {
      return tracked(unit, "groups", groupVerbs(rooms.jobs, known, within));
    },
    get schedules() {
      return tracked(unit, "schedules", scheduleVerbs(rooms.jobs, within, read));
    },
    get calls() {
      return tracked(unit, "calls", callVerbs(callsParts(rooms), within));
    },
    get events() {
      return tracked(unit, "events", eventVerbs(rooms.events, within));
    },
    get queues() {
      return tracked(unit, "queues", queueVerbs(within));
    },
    get templates() {
      return tracked(unit, "templates", templateVerbs(rooms.jobs, known, within));
    },
    get records() {
      // Two that commit records of one tenant at the same time cannot both have seen everything: one is run again.
      tx.compete(recordsTurn(tx.tenant));
      const records = recordUnit(tx, rooms.records);
      const reader = txReader(tx);
      return {
        ...tracked(unit, "records", {
          ...recordVerbs((work) => takeTurn?.().then(() => work(records)) ?? work(records)),
          annotate: (notes: Parameters<typeof annotateCommit>[1]) => annotateCommit(records, notes),
        }),
        ...recordReads({
          reader,
          run: function ask(verb, work) {
            // Some of them are called by others of them.
            return unit.track(`tx.records.${verb}`, placeOf(ask, 6), work);
          },
        }),
      };
    },
    tenant: tx.tenant,
    now: tx.now,
    sql: function ask<R>(strings: TemplateStringsArray, ...values: Value[]) {
      return unit.track("tx.sql", placeOfTemplate(strings, ask), async () => {
        const statement = userStatement(strings, values);
        try {
          await refuseOurIndex(tx, statement);
          await showRecords(tx, statement);
          return plainRows(await tx.all<R>(statement));
        } catch (error) {
          throw withStatement(error, statement);
        }
      });
    },
  };
  const builders: Builders = {
    dialect: tx.dialect,
    begin: () => unit.linger(),
    async run(place, text, params, raw) {
      return unit.track("a query", place, async () => {
        const statement = builtStatement(text, params, { raw, dialect: tx.dialect });
        try {
          await refuseOurIndex(tx, statement);
          await showRecords(tx, statement);
          const [answer] = await tx.all<BuiltAnswer>(statement);
          return answer ?? { columns: [], rows: [], count: 0 };
        } catch (error) {
          throw withStatement(error, statement);
        }
      });
    },
  };
  return Object.defineProperty(made, inside, { value: builders });
}

// What query builders use of a transaction and nobody else sees.
const inside = Symbol("builders");

/** How a query builder runs its statements in a transaction. `raw`: it reads times and large numbers from their text itself. */
export type Builders = {
  readonly dialect: Dialect;
  /** To be called before the first query is made. */
  begin(): void;
  run(place: Place, text: string, params: readonly unknown[], raw: boolean): Promise<BuiltAnswer>;
};

export function buildersOf(tx: UserTx): Builders {
  const { [inside]: builders } = tx as { readonly [inside]?: Builders };
  if (builders !== undefined) {
    builders.begin();
    return builders;
  }
  throw invalid("this is no transaction: give the tx that book.write, finish or step.write gave to your function");
}

/** A statement that a query builder made, held to the rules of `tx.sql`. On PostgreSQL the driver writes dates, lists and objects
 *  as it does for the builder elsewhere. */
function builtStatement(
  text: string,
  params: readonly unknown[],
  { raw, dialect }: { readonly raw: boolean; readonly dialect: Dialect },
): Sql {
  const values = params as readonly Value[];
  for (const value of values) {
    if (dialect === "sqlite" || typeof value !== "object" || value === null) checkValue(value);
  }
  return new Sql([text], [], undefined, markOfText(text), { params: values, raw });
}

// Builders make the same few texts again and again.
const markOfText = remember(checkUserSql, { max: limits.statementsCachedMax });

// A template has one place, so its place is looked up once.
const keptPlace = rememberFor((_template: readonly string[]): { place?: Place } => ({}));

function placeOfTemplate(strings: readonly string[], verb: (...args: never[]) => unknown): Place {
  return Array.isArray(strings) ? (keptPlace(strings).place ??= placeOf(verb)) : placeOf(verb);
}

/** An error of the database, with the user's statement in it. Its values are not shown. */
function withStatement(error: unknown, { strings }: Sql): unknown {
  if (!isDaybookError(error) || !("sqlite" in error.details || "sqlstate" in error.details)) return error;
  const statement = strings.join("?");
  return new DaybookError(error.code, `${error.message}: ${quoteSql(statement)}`, {
    cause: error,
    details: { ...error.details, statement },
  });
}

// SQLite says itself whose an index is.
async function refuseOurIndex(tx: Tx, { user, strings }: Sql): Promise<void> {
  if (tx.dialect === "sqlite" || user === undefined || user.indexes.length === 0) return;
  const found = await tx.get<{ name: string }>(sql`select tablename as name from pg_catalog.pg_indexes
    where schemaname = current_schema() and tablename like ${"daybook\\_%"} and indexname ${anyOf("text", user.indexes)}`);
  if (found !== undefined) throw notYours(found.name, strings.join("?"));
}

export function readTx(reader: Reader, tenant: string, { store }: Rooms): ReadTx {
  const at = { keep: store.keep, now: () => store.clock.now() };
  return {
    records: recordReads({ reader: snapshotReader(reader, tenant, at), run: (_verb, work) => work() }),
    tenant,
    async sql<R>(strings: TemplateStringsArray, ...values: Value[]) {
      const statement = userStatement(strings, values);
      try {
        return await reader.all<R>(statement);
      } catch (error) {
        throw calledFrom(withStatement(error, statement));
      }
    },
  };
}

// A template is the same array each time its line runs, and never changes, so its text is read once.
const markOf = rememberFor((texts: readonly string[]): UserMark => checkUserSql(texts.join("?")));

function userStatement(strings: TemplateStringsArray, values: readonly Value[]): Sql {
  if (!Array.isArray(strings) || !("raw" in strings)) {
    throw invalid("tx.sql is used as a template, without brackets: tx.sql`select … where id = ${id}`");
  }
  values.forEach(checkValue);
  const texts: readonly string[] = Object.isFrozen(strings) ? strings : Object.freeze([...(strings as string[])]);
  return new Sql(texts, values, undefined, markOf(texts));
}

// node:sqlite's rows have no prototype, which surprises assertion libraries and spread-happy code.
function plainRows<R>(rows: R[]): R[] {
  return rows.map((row) => ({ ...row }));
}

// Every verb of a transaction is noticed when it is not awaited, from its first step on.
function tracked<Verbs extends object>(unit: Unit, room: string, verbs: Verbs): Verbs {
  return wrapVerbs(verbs, (name, verb) => {
    const tracking = (...args: unknown[]): unknown =>
      unit.track(`tx.${room}.${name}`, placeOf(tracking), () => {
        refuseAlien(`tx.${room}.${name}`, args);
        return verb(...args);
      });
    return tracking;
  });
}
