// When a worker looks without being woken: at the next due time, and when a rate opens. One timer, no polling.
import type { Clock, Timer } from "../core/clock.ts";

export type Alarm = {
  /** What to look for in a turn that begins now. */
  ask(): { readonly version: number; readonly lookForDue: boolean };
  /** Whether it rings by then without being told. */
  knows(dueAt: number | null): boolean;
  /** Another commit may have brought an earlier due time. */
  forget(): void;
  /** What a turn found. */
  learn(asked: { readonly version: number }, found: Found): void;
  stop(): void;
};

/** `dueAt` is undefined when it was not looked for, null when nothing waits for its time. */
type Found = { readonly dueAt: number | null | undefined; readonly claim: { readonly opensAt: number | null } };

export function createAlarm(clock: Clock, ring: () => void): Alarm {
  let dueAt: number | null | undefined; // undefined: not known
  let opensAt: number | null = null;
  let version = 0;
  let timer: Timer | undefined;
  let stopped = false;

  function arm(): void {
    timer?.cancel();
    const at = earlier(dueAt ?? null, opensAt);
    if (at !== null && !stopped) timer = clock.after(Math.max(0, at - clock.now()), ring);
  }

  return {
    ask: () => ({ version, lookForDue: dueAt === undefined || (dueAt !== null && dueAt <= clock.now()) }),
    knows: (at) => dueAt !== undefined && (at === null || (dueAt !== null && dueAt <= at)),
    forget() {
      dueAt = undefined;
      version++;
    },
    learn(asked, { dueAt: found, claim }) {
      if (found !== undefined) {
        // Of two turns that overlap neither saw what the other did: the earlier time is the safe one.
        if (asked.version === version) dueAt = found;
        else if (dueAt !== undefined) dueAt = earlier(dueAt, found);
        // One that was asked before everything was forgotten has taught nothing: who was asked since must still be heard.
        if (dueAt !== undefined) version++;
      }
      // A turn sees some lanes only, so what others found stays true until it has come.
      opensAt = earlier(opensAt !== null && opensAt > clock.now() ? opensAt : null, claim.opensAt);
      arm();
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}

export function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
