// When a worker looks without being woken: at the next due time, and when a rate opens. One timer, no polling.
import type { Clock, Timer } from "../core/clock.ts";

export type Alarm = {
  /** What to look for in a turn that begins now. */
  ask(): Asked & { readonly lookForDue: boolean };
  /** Whether it rings by then without being told. */
  knows(dueAt: number | null): boolean;
  /** Another commit may have brought an earlier due time. */
  forget(): void;
  /** What a turn found. */
  learn(asked: Asked, found: Found): void;
  stop(): void;
};

/** How often, when a turn began, the time had been forgotten, and how often it had been learned. */
type Asked = { readonly forgotten: number; readonly learned: number };

/** `dueAt` is undefined when it was not looked for, null when nothing waits for its time. */
type Found = { readonly dueAt: number | null | undefined; readonly claim: { readonly opensAt: number | null } };

export function createAlarm(clock: Clock, ring: () => void): Alarm {
  let dueAt: number | null | undefined; // undefined: not known
  let opensAt: number | null = null;
  let forgotten = 0;
  let learned = 0;
  let timer: Timer | undefined;
  let stopped = false;

  function arm(): void {
    timer?.cancel();
    const at = earlier(dueAt ?? null, opensAt);
    if (at === null || stopped) return;
    // On PostgreSQL a turn may share a transaction that began a moment earlier, and what has come due since is not due for
    // it. Then the next turn is called for at once, before anybody takes the worker for idle.
    if (at <= clock.now()) rings();
    else timer = clock.after(at - clock.now(), rings);
  }

  // A lane that has opened is told of once, and not forgotten before: a turn may end in the very moment that it opens, and
  // most turns do not look at it.
  function rings(): void {
    if (opensAt !== null && opensAt <= clock.now()) opensAt = null;
    ring();
  }

  return {
    ask: () => ({ forgotten, learned, lookForDue: dueAt === undefined || (dueAt !== null && dueAt <= clock.now()) }),
    knows: (at) => dueAt !== undefined && (at === null || (dueAt !== null && dueAt <= at)),
    forget() {
      dueAt = undefined;
      forgotten++;
    },
    learn(asked, { dueAt: found, claim }) {
      if (found !== undefined) {
        // One that began before the time was forgotten may not have seen why, and a turn that begins later will tell. Of
        // two that overlap neither saw what the other did: the earlier time is the safe one.
        const current = asked.forgotten === forgotten;
        if (current && (asked.learned === learned || dueAt === undefined)) dueAt = found;
        else if (dueAt !== undefined) dueAt = earlier(dueAt, found);
        learned++;
      }
      // A turn sees some lanes only, so what others found stays true until it has come.
      opensAt = earlier(opensAt, claim.opensAt);
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
