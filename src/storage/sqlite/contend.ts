// Several processes share one file. SQLite's own busy timeout would block the event loop and starve the others, so
// the lock is tried for, and a loser sleeps a few jittered milliseconds. A winner gives way as well, once it has seen
// that others write: without that, it would begin its next group before any sleeper wakes.
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { jitter, type Random } from "../../core/random.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./sqlite-error.ts";

type Parts = { readonly connection: Connection; readonly clock: Clock; readonly random: Random };

export type Contention = {
  /** Waits a moment if others have been writing lately. */
  giveWay(): Promise<void>;
  /** Notes that a group was committed, and looks whether others wrote since the last one. */
  committed(): void;
  lost(): void;
};

/** How long after the last sign of another writer this one still gives way. */
const memoryMs = 1000;
/** About as long as a group of another process holds the lock. */
const giveWayMs = 3;
const retryMs = 2;
/** Looking for others costs a few microseconds, which a small group would feel. */
const lookEveryMs = 20;

export function createContention({ connection, clock, random }: Parts): Contention {
  const dataVersion = { text: "pragma data_version", params: [] };
  let version: unknown;
  let othersAt = Number.NEGATIVE_INFINITY;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let shared = false;
  return {
    async giveWay() {
      if (shared && clock.monotonic() - othersAt < memoryMs) await clock.sleep(jitter(random, giveWayMs, 1));
    },
    committed() {
      const now = clock.monotonic();
      if (now - lookedAt < lookEveryMs) return;
      lookedAt = now;
      // The number changes only when another connection wrote, never for our own commits.
      const found = (connection.get(dataVersion) as { data_version: unknown }).data_version;
      if (version !== undefined && found !== version) {
        othersAt = now;
        shared = true;
      }
      version = found;
    },
    lost() {
      othersAt = clock.monotonic();
      shared = true;
    },
  };
}

/** Begins the write transaction. Returns the error when another process held the file for `limits.busyMsMax`. */
export async function beginImmediate(parts: Parts, contention: Pick<Contention, "lost">): Promise<unknown> {
  return patiently(parts, "begin immediate", () => contention.lost());
}

/** Commits. Only an in-memory book can be busy here: its readers hold off the writer for a moment. */
export async function commitOrWait(parts: Parts): Promise<void> {
  const failure = await patiently(parts, "commit", () => undefined);
  if (failure !== undefined) throw failure;
}

async function patiently(parts: Parts, text: string, lost: () => void): Promise<unknown> {
  const { connection, clock, random } = parts;
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
