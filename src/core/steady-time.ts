// The time of transactions. It follows the wall clock, even when somebody sets that clock: after a clock was wrong for a moment,
// everything later is right again. Two kinds of steps back are smoothed. After a small one, time stands still until the wall clock
// has caught up. A large one, to a time that the clock never had, is not believed for some seconds, during which time follows the
// monotonic clock; but a program that started with a wrong clock less than that long ago follows the right one at once. No clock can
// tell whether the new time or the old one is right.
import type { Clock } from "./clock.ts";
import { formatDuration } from "./duration.ts";
import { conflict } from "./error.ts";
import { limits } from "./limits.ts";

export type SteadyTime = {
  /** The time of the next transaction. */
  now(): number;
  /** The time; null after the wall clock was set, until it is set back or has kept its new time for `forMs`. */
  settled(forMs: number): number | null;
  /** Calls back after the wall clock was set, with the difference in milliseconds. */
  onSet(hear: (byMs: number) => void): () => void;
};

/** How far the wall clock was from the monotonic one, and when. */
type Seen = { readonly offsetMs: number; readonly atMs: number };

export function createSteadyTime(clock: Clock): SteadyTime {
  const listeners = new Set<(byMs: number) => void>();
  let lastNow = Number.NEGATIVE_INFINITY;
  let seen: Seen = look(clock.now());
  let settled = seen;
  let settledFrom = seen.atMs;
  let doubtful: Seen | undefined;
  let heldUntil = Number.NEGATIVE_INFINITY;

  function look(wallMs: number): Seen {
    const atMs = clock.monotonic();
    return { offsetMs: wallMs - atMs, atMs };
  }

  function observe(wallMs: number): void {
    const now = look(wallMs);
    const was = seen;
    seen = now;
    if (isSame(was, now)) {
      // Most readings find everything as it was.
      if (doubtful === undefined) settled = now;
      else if (now.atMs - doubtful.atMs >= limits.clockSettleMs) {
        [settled, settledFrom, doubtful] = [now, doubtful.atMs, undefined];
      }
      return;
    }
    doubtful = isSame(settled, now) ? undefined : now;
    if (doubtful === undefined) settled = now;
    // A clock that stands still, as in a test, has not gone back.
    else if (wallMs < was.offsetMs + was.atMs && now.offsetMs < settled.offsetMs) {
      if (was.atMs - settledFrom >= limits.clockHoldMs) heldUntil = now.atMs + limits.clockHoldMs;
    }
    const byMs = Math.round(now.offsetMs - was.offsetMs);
    // Outside the transaction that happened to notice.
    if (listeners.size > 0) void clock.nextTurn().then(() => listeners.forEach((hear) => hear(byMs)));
  }

  return {
    now() {
      const wallMs = clock.now();
      observe(wallMs);
      const isHeld = doubtful !== undefined && seen.atMs < heldUntil;
      const nowMs = isHeld ? Math.floor(settled.offsetMs + seen.atMs) : wallMs;
      const backMs = lastNow - nowMs;
      return backMs > 0 && backMs <= limits.clockSmoothMs ? lastNow : (lastNow = nowMs);
    },
    settled(forMs) {
      const wallMs = clock.now();
      observe(wallMs);
      return doubtful === undefined || seen.atMs - doubtful.atMs >= forMs ? wallMs : null;
    },
    onSet(hear) {
      listeners.add(hear);
      return () => listeners.delete(hear);
    },
  };
}

/** The time by which old rows are removed. While the clocks disagree nothing tells what is old, so it throws. */
export function removalTime(
  time: SteadyTime,
  { dryRun = false }: { readonly dryRun?: boolean | undefined } = {},
): number {
  const now = time.settled(limits.clockSettleMs) ?? (dryRun ? time.now() : null);
  if (now !== null) return now;
  throw conflict(
    "the wall clock was set a moment ago, so nobody knows what is old, and nothing was removed: " +
      `set it right, or try again once it has kept its time for ${formatDuration(limits.clockSettleMs)}`,
    {},
  );
}

/** A time server makes a clock run up to half a part in a thousand faster or slower. */
function isSame(before: Seen, after: Seen): boolean {
  const driftMs = Math.abs(after.offsetMs - before.offsetMs);
  return driftMs <= limits.clockSmoothMs + (after.atMs - before.atMs) / 1000;
}
