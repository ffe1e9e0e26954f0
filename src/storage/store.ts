// What the rooms see of storage: a store, transactions and reads. Which engine and which thread did the work is not
// visible from here.
import type { Clock, SteadyTime } from "../core/clock.ts";
import { invalid, type DaybookError } from "../core/error.ts";
import type { Ids, Random } from "../core/id.ts";
import { limits } from "../core/limits.ts";
import type { Keep } from "../core/remember.ts";
import type { Reading } from "./reading.ts";
import type { Dialect, Sql, Value } from "./sql.ts";

export type Row = Record<string, Value>;
/** SQLite answers at once, PostgreSQL later; `await` takes both. */
export type Awaitable<T> = T | PromiseLike<T>;

/** A transaction as the engine's own units see it. They await nothing but its functions, and turns of the event loop between the
 *  slices of large work (slices.ts). */
export type Tx = {
  readonly dialect: Dialect;
  readonly tenant: string;
  /** Fixed when the unit begins. It is what the wall clock says, but for small steps back; order never rests on it. */
  readonly now: number;
  readonly ids: Ids;
  readonly random: Random;
  /** The store's own: what is kept outlives this transaction. */
  readonly keep: Keep;
  all<R>(statement: Sql): Awaitable<R[]>;
  get<R>(statement: Sql): Awaitable<R | undefined>;
  /** Runs a statement and says how many rows it changed. */
  run(statement: Sql): Awaitable<number>;
  /** Tells the listeners of `channel`, in this process and in others, once this transaction has committed. */
  wake(channel: string): void;
  /** Names what this unit competes for with others. Should it lose, it is run again when it is its turn: on PostgreSQL it
   *  then holds the name's lock (see `lockKey`) from before it first reads. SQLite's units never lose. */
  compete(name: string): void;
  /** Runs once this transaction has committed, in this process only; never after a rollback. */
  afterCommit(run: () => void): void;
  /** The user's part of a unit is over: what follows are the engine's own statements, and whichever fails ends the unit. On
   *  PostgreSQL they need no savepoints then, and their plans read nothing beside their rows. */
  userDone(): Awaitable<void>;
};

export type WriteOptions = {
  /** The tenant whose handle began the unit. */
  readonly tenant?: string;
  /** In whose turn it is written: turns alternate, and the units of one keep their order. Default the tenant's own, or the
   *  engine's. What serves all tenants, and nobody may hold up, has a turn of its own. */
  readonly turn?: OwnTurn;
  /** `user`: may misbehave, so it is watched, and on PostgreSQL it runs SERIALIZABLE on a connection of its own.
   *  `engine` (default): trusted; READ COMMITTED on a connection of its own.
   *  `shared`: an engine unit whose statements may be interleaved with those of its neighbours in one transaction,
   *  because constraints alone keep it right; on PostgreSQL these are grouped and pipelined. */
  readonly by?: "user" | "engine" | "shared";
  /** False: this unit holds locks, among them on the session's own row, so on PostgreSQL the beat is left to others. Two
   *  such units that both wanted to stamp would wait for each other. */
  readonly beat?: boolean;
  /** Asked after many conflicts in a row, where others are told of the conflict: whether to try on. */
  readonly tryOn?: () => boolean;
  /** The unit that puts right what a wrong clock wrote: others wait for it. */
  readonly putsRight?: boolean;
};

/** `together`: what callers of any tenant ask for at the same time. `worker`: a worker settles and claims. */
export type OwnTurn = "together" | "worker";

/** The name of a unit's turn. No tenant has such a name as the engine's turns have. */
export function turnOf({ turn, tenant }: WriteOptions): string {
  return turn === undefined ? (tenant ?? "\0") : `\0${turn}`;
}

/** A consistent view of the book: everything read through one reader is of one moment. */
export type Reader = {
  readonly dialect: Dialect;
  all<R>(statement: Sql): Promise<R[]>;
  /** As `readPage`. */
  page<R>(statement: Sql): Promise<Some<R>>;
};

/** Rows, and whether there are more that did not fit. */
export type Some<R> = { readonly rows: R[]; readonly more: boolean };

export type Stamp = { due(): boolean; run(tx: Tx): Awaitable<void> };

export const neverDue: Stamp = { due: () => false, run: () => undefined };

/** A client of `pg`, as `new Client()` or `pool.connect()` gives it, on which a transaction was begun. */
export type JoinedClient = {
  query(config: { text: string; values?: unknown[] }): Promise<{ rows: unknown[]; rowCount: number | null }>;
  /** Newer drivers know it: "I" outside of any transaction. */
  getTransactionStatus?(): string | null;
};

export type Store = {
  readonly dialect: Dialect;
  /** Where the book is, without a password. */
  readonly location: string;
  /** What a thread of this process opens to reach the same book (with the password). */
  readonly threadLocation: string;
  /** PostgreSQL only: the schema that holds the book's tables. */
  readonly schema?: string;
  readonly clock: Clock;
  /** By which others are waited for, in real time: a clock that a test has stopped stops none of them. */
  readonly waitClock: Clock;
  /** The time of transactions, and whether the wall clock was set. */
  readonly time: SteadyTime;
  readonly ids: Ids;
  readonly random: Random;
  /** The caches of the rooms, by name. */
  readonly keep: Keep;
  /** Runs `unit` in a transaction and resolves once it is on disk. It may run more than once. */
  write<T>(unit: (tx: Tx) => Awaitable<T>, options?: WriteOptions): Promise<T>;
  /** PostgreSQL only: runs `unit` in a transaction that its caller began on a connection of `pg`, and commits. */
  join?<T>(client: JoinedClient, unit: (tx: Tx) => Awaitable<T>, tenant: string): Promise<T>;
  /** Resolves once the units that have begun by now have ended. */
  begunEnded(): Promise<unknown>;
  /** A point read: few rows by an index, on this thread. */
  read<R>(statement: Sql): Promise<R[]>;
  /** A read of unknown cost (lists, reports): never on this thread. It takes its turn among those of its tenant and is
   *  ended at its deadline; both are those of the verb under way unless `who` says otherwise. */
  readHeavy<R>(statement: Sql, who?: Partial<Reading>): Promise<R[]>;
  /** The same for rows that may be large: it answers at least one, and no more once `limits.pageBytesMax` are full. */
  readPage<R>(statement: Sql, who?: Partial<Reading>): Promise<Some<R>>;
  /** A statement that may take minutes (backup, integrity): on a thread and a connection of its own. */
  readLong<R>(statement: Sql): Promise<R[]>;
  /** Several of them, one after the other on the same thread: to start one costs more than most of them take. */
  readsLong<T>(run: (reader: Reader) => Promise<T>): Promise<T>;
  /** Several reads of one moment, with the turn and the deadline of a read. */
  snapshot<T>(run: (reader: Reader) => Promise<T>, who?: Partial<Reading>): Promise<T>;
  /** Hears the channels that committed transactions woke; `null` means another process wrote something. */
  onWake(hear: (channel: string | null) => void): () => void;
  /** Run in one of this store's transactions, just before it commits, whenever it is due: the session's beat. */
  beforeCommit(stamp: Stamp): void;
  /** SQLite only: what of the file's settings would lose acknowledged writes. */
  amiss?(): readonly string[];
  /** Set once the book is being closed: throws `closed` for callers that may no longer use it. What runs may still settle. */
  refuse?: (verb: string) => void;
  /** Drops whatever transaction is open, at once: the process is about to end. */
  abandon(): void;
  /** From here on it keeps no process alive; what is under way goes on for as long as the process does. */
  unref(): void;
  close(): Promise<void>;
};

/** What an engine makes of a store; the rest is the same for both. */
export type EngineStore = Omit<Store, "clock" | "waitClock" | "random" | "ids" | "keep" | "time" | "readLong">;

export function usedAfterEnd(verb = "tx"): DaybookError {
  return invalid(
    `${verb} was used after its transaction ended: await everything inside the function given to book.write`,
  );
}

export function endedReader(): DaybookError {
  return invalid("a reader was used after its read ended: await everything inside book.read");
}

export function answerTooLarge(): DaybookError {
  const mb = limits.readBytesMax / 1_048_576;
  return invalid(`a read answers more than ${mb} MB: select fewer columns, or read it in pages with limit`);
}

/** What was begun and has not ended. Closing waits for it, so that every caller is answered. */
export type UnderWay = {
  track<T>(work: Promise<T>): Promise<T>;
  /** Resolves once nothing is under way any more, what began in the meantime included. */
  settled(): Promise<void>;
  /** Resolves once what is under way now has ended. */
  begunEnded(): Promise<unknown>;
};

export function createUnderWay(): UnderWay {
  const open = new Set<Promise<unknown>>();
  return {
    track(work) {
      open.add(work);
      const forget = (): void => void open.delete(work);
      work.then(forget, forget);
      return work;
    },
    begunEnded: () => Promise.allSettled([...open]),
    async settled() {
      while (open.size > 0) await Promise.allSettled(open);
    },
  };
}
