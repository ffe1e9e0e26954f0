// Several processes share one file. SQLite's own busy timeout would block the event loop and starve the others, so
// the lock is tried for, and a loser sleeps a few jittered milliseconds. A winner writes for a short turn and then gives
// way, once it has seen that others write: without that, it would begin its next group before any sleeper wakes. A
// turn is several small groups, because a file that changes hands after each of them stands idle most of the time.
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { jitter, type Random } from "../../core/random.ts";
import { rollBack, type Connection } from "./connection.ts";
import { isBusy } from "./sqlite-error.ts";

/** Others hold the file in real time, so they are waited for by a clock of their own (open-store.ts). */
type Parts = { readonly connection: Connection; readonly waitClock: Clock; readonly random: Random };

export type Contention = {
  /** Waits a moment when this process has had its turn and others write too. */
  giveWay(): Promise<void>;
  /** Notes that a group was committed, and looks whether others wrote since the last one. */
  committed(): void;
  /** Notes that another process held the file. */
  lost(): void;
};

const turnMs = 5;
/** Longer than a loser sleeps, so that one who waits finds the file free. */
const giveWayMs = 4;
const retryMs = 2;
/** Nobody came for this long: the file is ours again. */
const turnMsMax = 1000;
/** Looking for others costs a few microseconds, which a small group would feel. */
const lookEveryMs = 20;

export function createContention({ connection, waitClock: clock, random }: Parts): Contention {
  const dataVersion = { text: "pragma data_version", params: [] };
  let version: unknown;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let turnFrom = Number.NEGATIVE_INFINITY;
  /** Doubles each time we gave way and nobody came; without end while nobody else was ever seen. */
  let turn = Number.POSITIVE_INFINITY;
  let waited = false;

  // The number changes only when another connection wrote, never for our own commits.
  function othersWrote(now: number): boolean {
    lookedAt = now;
    try {
      const found = (connection.get(dataVersion) as { data_version: unknown }).data_version;
      const changed = version !== undefined && found !== version;
      version = found;
      return changed;
    } catch {
      return true; // the file is busy for a moment, so somebody is there; a commit must not fail because of this look
    }
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

/** Begins the write transaction. Returns the error when another process held the file for `limits.busyMsMax`. */
export async function beginImmediate(parts: Parts, contention: Pick<Contention, "lost">): Promise<unknown> {
  const failure = await patiently(parts, "begin immediate", () => contention.lost());
  if (failure !== undefined) rollBack(parts.connection);
  return failure;
}

/** Commits. Only an in-memory book can be busy here: its readers, threads of this process, hold off the writer for a moment. */
export async function commitOrWait(parts: Parts): Promise<void> {
  const failure = await patiently(parts, "commit", () => undefined);
  if (failure !== undefined) throw failure;
}

async function patiently(parts: Parts, text: string, lost: () => void): Promise<unknown> {
  const { connection, waitClock: clock, random } = parts;
  const until = clock.monotonic() + limits.busyMsMax;
  for (;;) {
    try {
      connection.exec(text);
      return undefined;
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= until) return error;
      lost();
      await clock.sleep(jitter(random, retryMs, 0.75));
    }
  }
}
