// Watches the other sessions and ends those that died. It must never take a live session for dead, so it measures silence by
// its own monotonic clock, in slices: a beat counter that has not moved for a whole time to live, while the observer was awake
// and could write its own beat. (A full disk, or a stopped process that holds the file, silences every session; the first one
// that writes afterwards must not end the others.) Wall clocks are never compared. A process of this host that is provably gone
// is not waited for.
import type { Timer } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import type { Store } from "../storage/store.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { endSilentSession, isGone, runningSessions, type OnSilent, type SessionRow } from "./session.ts";

export type Watch = {
  /** Looks now; resolves to the sessions that were found dead. */
  look(): Promise<SessionRow[]>;
  stop(): void;
};

type WatchParts = {
  readonly store: Store;
  readonly identity: ProcessIdentity;
  /** The observer's own session, which it does not judge. */
  readonly self: () => string;
  /** Runs in the transaction that ends a silent session. */
  readonly onSilent?: OnSilent | undefined;
};

const lookEveryMs = 5000;
/** A slice counts for at most this much: if the machine slept between two looks, every session slept. */
const sliceMsMax = 2 * lookEveryMs;

/** `ownBeat`: the observer's own counter when the last slice ended, at `until`. */
type Seen = { readonly beat: number; silentMs: number; until: number; ownBeat: number | undefined };
type Look = { readonly asked: number; readonly answered: number; readonly ownBeat: number | undefined };

export function watchSessions(parts: WatchParts): Watch {
  const { store } = parts;
  const seen = new Map<string, Seen>();
  let timer: Timer | undefined;
  let stopped = false;

  async function look(): Promise<SessionRow[]> {
    const asked = store.clock.monotonic();
    const rows = await store.read<SessionRow>(runningSessions());
    const own = rows.find((row) => row.id === parts.self());
    // A remote worker has leases, which run out by themselves.
    const others = rows.filter((row) => row !== own && row.kind !== "remote");
    const now: Look = { asked, answered: store.clock.monotonic(), ownBeat: own?.beat };
    const dead = others.filter((row) => isGone(row, parts.identity, store) || isSilent(row, now));
    for (const id of seen.keys()) if (!others.some((row) => row.id === id)) seen.delete(id);
    return endAll(dead);
  }

  function isSilent(row: SessionRow, { asked, answered, ownBeat }: Look): boolean {
    const known = seen.get(row.id);
    if (known?.beat !== row.beat) {
      seen.set(row.id, { beat: row.beat, silentMs: 0, until: answered, ownBeat });
      return false;
    }
    if (ownBeat !== undefined && ownBeat !== known.ownBeat) {
      // Counted from one answer to the next question, because a beat may pass an answer that is on its way.
      known.silentMs += Math.min(Math.max(0, asked - known.until), sliceMsMax);
      known.until = answered;
      known.ownBeat = ownBeat;
    }
    return known.silentMs >= limits.sessionTtlMs;
  }

  // A session that cannot be ended, perhaps because of what it left behind, does not keep the others from being ended.
  async function endAll(dead: readonly SessionRow[]): Promise<SessionRow[]> {
    const ended: SessionRow[] = [];
    const failures: unknown[] = [];
    for (const row of dead) {
      try {
        if (await end(row)) ended.push({ ...row, status: "unknown", stopped_at: row.last_heartbeat_at });
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return ended;
  }

  async function end(row: SessionRow): Promise<boolean> {
    return store.write(async (tx) => {
      const ended = await endSilentSession(tx, row);
      if (ended) await parts.onSilent?.(tx, row);
      return ended;
    });
  }

  function schedule(): void {
    timer = store.clock.after(lookEveryMs, () => {
      // The next look makes up for a failed one. Users of a store notice by themselves when it stays out of reach.
      void look()
        .catch(() => undefined)
        .then(() => (stopped ? undefined : schedule()));
    });
  }
  schedule();

  return {
    look,
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}
