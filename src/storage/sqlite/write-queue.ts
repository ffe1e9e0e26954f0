// One writer, group commit. Units wait by turn (write-turns.ts); a group begins one transaction, runs the units whose turn it
// is behind a savepoint each, commits once and only then resolves them all. So an acknowledged unit is on disk, and the sync
// that this costs is shared.
import { AsyncLocalStorage } from "node:async_hooks";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Awaitable, Stamp, Tx } from "../store.ts";
import { rollBack, SqliteTx, type Connection, type TxParts } from "./connection.ts";
import { beginImmediate, createContention, patiently, type Contention } from "./share.ts";
import { isBusy } from "./sqlite-error.ts";
import type { Clock, SteadyTime } from "../../core/clock.ts";
import { killPoint } from "../../core/fact.ts";
import { isThenable } from "../../core/json.ts";
import { runAfterCommit } from "../unit.ts";
import { createWriteTurns, type WriteTurns } from "../write-turns.ts";

// No caller's async context: the loop belongs to none of them.
const outside = AsyncLocalStorage.snapshot();

export type WriteQueue = {
  add<T>(run: (tx: Tx) => Awaitable<T>, how: UnitOptions): Promise<T>;
  /** Resolves once the units that wait or run by now have ended. */
  begunEnded(): Promise<unknown>;
  /** Refuses new units and resolves once the ones that wait are done. */
  drain(): Promise<void>;
};

type UnitOptions = Pick<Waiting, "tenant" | "turn" | "careful">;

export function createWriteQueue(given: Omit<GroupParts, "contention" | "turns">): WriteQueue {
  const { clock } = given;
  const turns = createWriteTurns<Waiting>(() => clock.monotonic());
  const contention = createContention(given);
  const parts: GroupParts = { ...given, turns, contention };
  let group: readonly Waiting[] = [];
  let arrived = 0;
  let working: Promise<void> | undefined;
  let closed = false;

  async function work(): Promise<void> {
    while (turns.size > 0) {
      // A turn of the loop lets the callers that were just answered ask again, so that they share the next group.
      await clock.nextTurn();
      const arrivedBefore = arrived;
      try {
        await contention.giveWay();
        await beginImmediate(parts, contention.lost);
      } catch (error) {
        refuse(error, arrivedBefore);
        continue;
      }
      await runNext();
    }
    working = undefined;
  }

  // Whatever happens in one group, the others go on: their units would wait for ever.
  async function runNext(): Promise<void> {
    group = turns.take(limits.groupUnitsMax);
    try {
      turns.putBack(await runGroup(parts, group));
    } catch (error) {
      rollBack(parts.connection);
      for (const waiting of group) waiting.reject(error);
    }
    group = [];
  }

  // When the file is busy, the units that waited when the try began have waited its full time and give up; those that came later
  // try again.
  function refuse(failure: unknown, arrivedBefore: number): void {
    for (const waiting of turns.remove(isBusy(failure) ? arrivedBefore : undefined)) waiting.reject(failure);
  }

  function add<T>(run: (tx: Tx) => Awaitable<T>, how: UnitOptions): Promise<T> {
    if (closed) return Promise.reject(new DaybookError("closed", "the book is closed: open it again to write"));
    return new Promise<T>((resolve, reject) => {
      // A user's function runs in its caller's own async context, not in that of the caller that happened to start the loop.
      const bound = how.careful ? AsyncLocalStorage.bind(run) : run;
      turns.add({
        tenant: how.tenant,
        turn: how.turn,
        careful: how.careful,
        arrived: ++arrived,
        run: bound,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      working ??= outside(work);
    });
  }

  return {
    add,
    begunEnded() {
      const begun = new Set([...turns.waiting(), ...group.map(({ turn }) => turn)]);
      const last = (turn: string): Promise<void> => add(() => undefined, { tenant: "default", turn, careful: false });
      return Promise.all([...begun].map(last));
    },
    async drain() {
      closed = true;
      await working;
    },
  };
}

// One group of units in one transaction:
//
//   begun ──► savepoint, unit, release ──► … ──► stamp the beat ──► commit ──► resolve all
//                      │ throws: undone alone, rejected             │
//                      └── SQLite ended the transaction ────────────┴──► each unit runs again, alone
//
// SQLite ends a transaction by itself when the disk is full or fails, and on `or rollback`; the savepoints are gone
// then, and with them what the neighbours wrote. That is why a unit may run more than once. A group of the engine's own
// units, which hardly ever throw, runs without savepoints first and comes back with them only when one did: a
// savepoint makes SQLite copy every page that a unit touches, which costs more than the unit itself.

type Waiting = {
  readonly run: (tx: Tx) => Awaitable<unknown>;
  readonly tenant: string;
  readonly turn: string;
  readonly arrived: number;
  /** A user's unit: it always has a savepoint of its own, so that a neighbour that throws does not make it run twice. */
  readonly careful: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
};

type GroupParts = TxParts & {
  readonly clock: Clock;
  readonly waitClock: Clock;
  readonly contention: Contention;
  readonly turns: WriteTurns<Waiting>;
  readonly time: SteadyTime;
  readonly stamp: () => Stamp;
  /** Told which channels a committed group woke. */
  readonly woken: (channels: ReadonlySet<string>) => void;
};

type Done = { waiting: Waiting; tx: SqliteTx; result: unknown };

/** Runs `units` in the transaction that has begun, as many as fit. Returns those it did not get to. */
async function runGroup(parts: GroupParts, units: readonly Waiting[]): Promise<Waiting[]> {
  const { clock, turns } = parts;
  if (units.every((waiting) => !waiting.careful)) return runTrusting(parts, units);
  let at = clock.monotonic();
  const until = at + limits.groupMsMax;
  const done: Done[] = [];
  const undecided: Waiting[] = [];
  let taken = 0;
  let ended = false;
  while (taken < units.length && !ended) {
    const waiting = units[taken++] as Waiting;
    const became = await runBehindSavepoint(parts, waiting, done);
    // One that threw was undone and told so: it must not come back should the group end below.
    if (became !== "rejected") undecided.push(waiting);
    ended = became === "ended";
    const now = clock.monotonic();
    turns.used(waiting.turn, 1, now - at);
    at = now;
    if (now >= until) break;
  }
  if (ended || !(await commit(parts, done))) {
    for (const waiting of undecided) await runAlone(parts, waiting);
  }
  return units.slice(taken);
}

/** A group of the engine's units only. When one of them throws, all are undone and come back as careful ones. */
async function runTrusting(parts: GroupParts, units: readonly Waiting[]): Promise<Waiting[]> {
  const { connection, clock, turns } = parts;
  let at = clock.monotonic();
  const until = at + limits.groupMsMax;
  const done: Done[] = [];
  let measured = 0;
  try {
    const now = parts.time.now();
    for (const [index, waiting] of units.entries()) {
      const tx = newTx(parts, waiting.tenant, now);
      const pending = waiting.run(tx);
      done.push({ waiting, tx, result: isThenable(pending) ? await pending : pending });
      tx.end();
      // It may have hidden the error that ended the transaction; the next statement would commit by itself.
      if (tx.endedBy !== undefined) throw tx.endedBy;
      // Reading the clock costs as much as a small unit, so it is read for every eighth of a turn.
      const { turn } = waiting;
      if (turn === units[index + 1]?.turn && done.length - measured < 8 && !turns.takesLong(turn)) continue;
      const before = at;
      turns.used(turn, done.length - measured, (at = clock.monotonic()) - before);
      measured = done.length;
      if (at >= until) break;
    }
  } catch {
    rollBack(connection);
    return units.map((waiting) => ({ ...waiting, careful: true }));
  }
  if (await commit(parts, done)) return units.slice(done.length);
  return units.map((waiting) => ({ ...waiting, careful: true }));
}

/** Adds the unit to `done`, or undoes and rejects it; when the transaction has ended, it is judged alone later. */
async function runBehindSavepoint(
  parts: GroupParts,
  waiting: Waiting,
  done: Done[],
): Promise<"done" | "rejected" | "ended"> {
  const { connection } = parts;
  const tx = newTx(parts, waiting.tenant);
  if (!attempt(connection, "savepoint unit")) return "ended";
  try {
    const result = await waiting.run(tx);
    tx.end();
    if (!attempt(connection, "release unit")) return "ended";
    done.push({ waiting, tx, result });
    return "done";
  } catch (error) {
    tx.end();
    if (!undo(connection)) return "ended";
    waiting.reject(error);
    return "rejected";
  }
}

function undo(connection: Connection): boolean {
  return connection.inTransaction && attempt(connection, "rollback to unit") && attempt(connection, "release unit");
}

/** False when it failed; the transaction is over then, because what belongs to whom can no longer be told. */
function attempt(connection: Connection, text: string): boolean {
  try {
    connection.exec(text);
    return true;
  } catch {
    rollBack(connection);
    return false;
  }
}

async function commit(parts: GroupParts, done: readonly Done[]): Promise<boolean> {
  const { connection } = parts;
  try {
    if (done.length > 0 && parts.stamp().due()) await stampBeat(parts);
    await commitToDisk(parts);
  } catch {
    rollBack(connection);
    return false;
  }
  acknowledge(parts, done);
  return true;
}

// The beat must never cost a unit its commit, so it is undone alone like any unit.
async function stampBeat(parts: GroupParts): Promise<void> {
  const tx = newTx(parts, "");
  if (!attempt(parts.connection, "savepoint unit")) return;
  try {
    await parts.stamp().run(tx);
    attempt(parts.connection, "release unit");
  } catch {
    undo(parts.connection);
  } finally {
    tx.end();
  }
}

async function runAlone(parts: GroupParts, waiting: Waiting): Promise<void> {
  const { connection } = parts;
  let tx: SqliteTx | undefined;
  try {
    await beginImmediate(parts, parts.contention.lost);
    tx = newTx(parts, waiting.tenant);
    const result = await waiting.run(tx);
    tx.end();
    if (!connection.inTransaction) throw tx.endedBy;
    await commitToDisk(parts);
    acknowledge(parts, [{ waiting, tx, result }]);
  } catch (error) {
    tx?.end();
    rollBack(connection);
    waiting.reject(error);
  }
}

/** Only an in-memory book can be busy here: its readers, threads of this process, hold off the writer for a moment. */
async function commitToDisk(parts: GroupParts): Promise<void> {
  killPoint("storage.commit");
  await patiently(parts, () => parts.connection.exec("commit"));
  killPoint("storage.committed");
}

function acknowledge(parts: GroupParts, done: readonly Done[]): void {
  const channels = new Set<string>();
  for (const { tx, waiting, result } of done) {
    if (tx.channels !== undefined) for (const channel of tx.channels) channels.add(channel);
    waiting.resolve(result);
    if (tx.committed !== undefined) runAfterCommit(tx.committed);
  }
  parts.contention.committed();
  parts.woken(channels);
}

function newTx(parts: GroupParts, tenant: string, now: number = parts.time.now()): SqliteTx {
  return new SqliteTx(parts, tenant, now);
}
