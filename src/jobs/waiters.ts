// Those who wait in this process for jobs to end. Whoever ends a job that is marked `awaited` wakes `doneChannel`; then
// one read finds out which of ours have ended, however many wait. Each of them looks for itself after that.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { doneChannel } from "./job.ts";

export type Waiter = {
  /** Set once nothing more is to be waited for. */
  readonly over: "timeout" | "closed" | undefined;
  /** Resolves when there is reason to look: it is asked for before a look, so that nothing falls in between. */
  news(): Promise<void>;
  /** From now on only the end of this job is news; with `any`, every end that somebody waits for. */
  waitFor(seq: number | "any"): void;
  /** There is reason to look again. */
  wake(): void;
  expire(): void;
  leave(): void;
};

type Waiters = { join(): Waiter; end(): void };

type Waiting = {
  /** Undefined while it looks. */
  seq: number | "any" | undefined;
  /** How many wakes had been heard when it began to look. */
  heard: number;
  over: Waiter["over"];
  wake(): void;
};

const waitersOf = new WeakMap<Store, Waiters>();

export function joinWaiters(store: Store): Waiter {
  let waiters = waitersOf.get(store);
  if (waiters === undefined) waitersOf.set(store, (waiters = createWaiters(store)));
  return waiters.join();
}

/** The book is being closed: everybody is told, and whoever comes later hears it at once. */
export function endWaiting(store: Store): void {
  waitersOf.get(store)?.end();
  waitersOf.set(store, { join: () => newWaiter(newWaiting("closed"), idle), end: () => undefined });
}

function createWaiters(store: Store): Waiters {
  const all = new Set<Waiting>();
  let stopListening: (() => void) | undefined;
  let heard = 0;
  let asked = false;

  function hear(channel: string | null): void {
    if (channel !== doneChannel && channel !== null) return;
    heard++;
    ask();
  }

  function ask(): void {
    if (asked) return;
    asked = true;
    // What is woken together is looked for together.
    void store.clock.nextTurn().then(look);
  }

  async function look(): Promise<void> {
    asked = false;
    const seqs = new Map([...all].map((each) => [each, each.seq]));
    const ended = await readEnded([...seqs.values()].filter((seq) => typeof seq === "number"));
    for (const [each, seq] of seqs) {
      if (seq === "any" || (seq !== undefined && (ended?.has(seq) ?? true))) each.wake();
    }
  }

  // When it fails, each waiter looks for itself and learns why.
  async function readEnded(seqs: readonly number[]): Promise<Set<number> | undefined> {
    if (seqs.length === 0) return new Set();
    const ended = sql`select seq from job where seq ${anyOf("integer", seqs)} and finished_at is not null`;
    const rows = await store.read<{ seq: number }>(ended).catch(() => undefined);
    return rows && new Set(rows.map((row) => row.seq));
  }

  return {
    join() {
      const waiting = newWaiting();
      all.add(waiting);
      stopListening ??= store.onWake(hear);
      return newWaiter(waiting, {
        heard: () => heard,
        ask,
        leave() {
          all.delete(waiting);
          if (all.size > 0) return;
          stopListening?.();
          stopListening = undefined;
        },
      });
    },
    end() {
      for (const each of all) Object.assign(each, { over: "closed" }).wake();
    },
  };
}

type Hub = { heard(): number; ask(): void; leave(): void };

const idle: Hub = { heard: () => 0, ask: () => undefined, leave: () => undefined };

function newWaiting(over?: "closed"): Waiting {
  return { seq: undefined, heard: 0, over, wake: () => undefined };
}

function newWaiter(waiting: Waiting, hub: Hub): Waiter {
  return {
    get over() {
      return waiting.over;
    },
    news() {
      const { promise, resolve } = Promise.withResolvers<void>();
      Object.assign(waiting, { seq: undefined, heard: hub.heard(), wake: resolve });
      return promise;
    },
    waitFor(seq) {
      waiting.seq = seq;
      // What was heard while it looked may have been about this; one read for all finds out.
      if (waiting.heard !== hub.heard()) hub.ask();
    },
    wake: () => waiting.wake(),
    expire() {
      waiting.over ??= "timeout";
      waiting.wake();
    },
    leave: () => hub.leave(),
  };
}
