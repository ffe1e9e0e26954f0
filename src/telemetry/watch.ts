// Watches the other sessions and ends those that died. A live one must never be taken for dead, so silence is measured
// by the observer's own monotonic clock, in slices: a beat counter that has not moved while the observer itself was
// awake for a whole time to live. Wall clocks are never compared. A process of this host that is provably gone need
// not be waited for.
import type { Timer } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import type { Store } from "../storage/store.ts";
import { isProvablyGone, type ProcessIdentity } from "./process-identity.ts";
import { endSilentSession, runningSessions, type OnSilent, type SessionRow } from "./session.ts";

export type Watch = {
  /** Looks now; resolves to the sessions that were found dead. */
  look(): Promise<SessionRow[]>;
  stop(): void;
};

export type WatchParts = {
  readonly store: Store;
  readonly identity: ProcessIdentity;
  /** The observer's own session, which it does not judge. */
  readonly self: () => string;
  /** Runs in the transaction that ends a silent session. */
  readonly onSilent?: OnSilent | undefined;
};

const lookEveryMs = 5000;
/** A slice counts for at most this much: if the machine slept between two looks, everybody else slept too. */
const sliceMsMax = 2 * lookEveryMs;

type Seen = { beat: number; silentMs: number; at: number };

export function watchSessions(parts: WatchParts): Watch {
  const { store } = parts;
  const seen = new Map<string, Seen>();
  let timer: Timer | undefined;
  let stopped = false;

  async function look(): Promise<SessionRow[]> {
    const rows = await store.read<SessionRow>(runningSessions());
    const others = rows.filter((row) => row.id !== parts.self());
    const dead = others.filter((row) => isGone(row) || isSilent(row));
    for (const id of seen.keys()) if (!others.some((row) => row.id === id)) seen.delete(id);
    const ended: SessionRow[] = [];
    for (const row of dead) if (await end(row)) ended.push(row);
    return ended;
  }

  function isGone(row: SessionRow): boolean {
    const { host, host_boot: hostBoot, host_namespace: hostNamespace, pid, process_started: processStarted } = row;
    const other = { host, hostBoot, hostNamespace, pid, processStarted };
    return isProvablyGone(other, parts.identity, { sameMachine: store.dialect === "sqlite" });
  }

  function isSilent(row: SessionRow): boolean {
    const at = store.clock.monotonic();
    const before = seen.get(row.id);
    const moved = before === undefined || before.beat !== row.beat;
    const silentMs = moved ? 0 : before.silentMs + Math.min(at - before.at, sliceMsMax);
    seen.set(row.id, { beat: row.beat, silentMs, at });
    return silentMs >= limits.sessionTtlMs;
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
      // A look that fails is made up for by the next one; a store that stays out of reach is its user's to notice.
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
