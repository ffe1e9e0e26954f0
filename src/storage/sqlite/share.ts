// Several processes share one file: how they take turns at writing it, and hear of each other's commits. SQLite's own busy
// timeout would block the event loop and starve the others, so a process tries for the lock, and a loser sleeps a few jittered
// milliseconds. A winner writes for a short turn and then gives way, once it has seen that others write: without that, it
// would begin its next group before any sleeper wakes. A turn is several small groups, because a file that changes hands
// after each of them stands idle most of the time.
import type { Clock, Timer } from "../../core/clock.ts";
import { jitter, type Random } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import { tellAll } from "../unit.ts";
import { rollBack, type Connection } from "./connection.ts";
import { isBusy } from "./sqlite-error.ts";

/** Others hold the file in real time, so a process waits for them by a clock of its own (open-store.ts). */
type Waits = { readonly waitClock: Clock; readonly random: Random };
type Parts = Waits & { readonly connection: Connection };

export type Contention = {
  /** Waits a moment when this process has had its turn and others write too. */
  giveWay(): Promise<void>;
  /** Notes that a group was committed, and looks whether others wrote since the last one. */
  committed(): void;
  /** Notes that another process held the file. */
  lost(): void;
};

const turnMs = 5;
/** Longer than a loser sleeps, so that a process that waits finds the file free. */
const giveWayMs = 4;
const retryMs = 2;
/** No other process came for this long: the file is ours again. */
const turnMsMax = 1000;
/** Looking for others costs a few microseconds, which a small group would feel. */
const lookEveryMs = 20;

export function createContention({ connection, waitClock: clock, random }: Parts): Contention {
  let version: unknown;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let turnFrom = Number.NEGATIVE_INFINITY;
  /** Doubles each time we gave way and no other process came; without end while none was ever seen. */
  let turn = Number.POSITIVE_INFINITY;
  let waited = false;

  function othersWrote(now: number): boolean {
    lookedAt = now;
    const found = dataVersion(connection);
    if (found === undefined) return true;
    const changed = version !== undefined && found !== version;
    version = found;
    return changed;
  }
  return {
    async giveWay() {
      if (turn === Number.POSITIVE_INFINITY || clock.monotonic() - turnFrom < turn) return;
      await clock.sleep(jitter(random, giveWayMs, 0.25));
      turnFrom = clock.monotonic();
      if (othersWrote(turnFrom)) turn = turnMs;
      else turn = turn < turnMsMax ? turn * 2 : Number.POSITIVE_INFINITY;
    },
    committed() {
      const now = clock.monotonic();
      // A turn begins when the file was won, not when it was asked for.
      if (waited) turnFrom = now;
      waited = false;
      if (now - lookedAt >= lookEveryMs && othersWrote(now)) turn = turnMs;
    },
    lost() {
      waited = true;
      turn = turnMs;
    },
  };
}

const dataVersionQuery = { text: "pragma data_version", params: [] };

/** A number that changes only when another connection wrote, never for our own commits. Undefined while the file is busy for a
 *  moment, because another process uses it or has crashed: no commit fails for this look. */
function dataVersion(connection: Connection): unknown {
  try {
    return (connection.get(dataVersionQuery) as { data_version: unknown }).data_version;
  } catch {
    return undefined;
  }
}

/** Begins the write transaction. */
export async function beginImmediate(parts: Parts, lost?: () => void): Promise<void> {
  try {
    await patiently(parts, () => parts.connection.exec("begin immediate"), lost);
  } catch (error) {
    rollBack(parts.connection);
    throw error;
  }
}

/** Tries again while the file is busy, for `limits.busyMsMax` at the most. A process that begins or ends using the file while no
 *  other does also holds it for a moment. */
export async function patiently<T>(
  { waitClock: clock, random }: Waits,
  run: () => T,
  lost: () => void = () => undefined,
): Promise<T> {
  const until = clock.monotonic() + limits.busyMsMax;
  for (;;) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= until) throw error;
      lost();
      await clock.sleep(jitter(random, retryMs, 0.75));
    }
  }
}

/** Tells listeners that something was committed: our own commits at once, those of other processes by looking at the data
 *  version. That look reads one number from shared memory and no table, so it may be frequent. */
export type Waker = {
  tell(channels: ReadonlySet<string>): void;
  listen(hear: (channel: string | null) => void): () => void;
  close(): void;
};

const wakeEveryMs = 50;

/** `alone`: no other process can commit there, so there is nothing to look for. */
export function createWaker(connection: Connection, clock: Clock, { alone }: { alone: boolean }): Waker {
  const listeners = new Set<(channel: string | null) => void>();
  let version: unknown;
  let missed = false;
  let timer: Timer | undefined;

  function look(): void {
    timer = clock.after(wakeEveryMs, look);
    // Inside a transaction the number cannot change; the group that is open looks again when it is done.
    if (connection.inTransaction) missed = true;
    else compare();
  }
  function compare(): void {
    const found = dataVersion(connection);
    if (found === undefined) return;
    // A listener that began during a transaction may have missed a change before it.
    const changed = version === undefined ? missed : found !== version;
    missed = false;
    version = found;
    if (changed) tellAll(listeners, null);
  }

  return {
    tell(channels) {
      for (const channel of channels) tellAll(listeners, channel);
      if (missed && listeners.size > 0 && !connection.inTransaction) compare();
    },
    listen(hear) {
      listeners.add(hear);
      if (timer === undefined && !alone) look();
      return () => {
        listeners.delete(hear);
        if (listeners.size > 0) return;
        timer?.cancel();
        timer = undefined;
      };
    },
    close() {
      timer?.cancel();
      listeners.clear();
    },
  };
}
