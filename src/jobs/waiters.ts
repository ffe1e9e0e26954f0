// Those who wait in this process for jobs or groups to end. Whoever ends a job that is marked `awaited`, or a group, wakes
// `doneChannel`; then one read finds out which of ours have ended, however many wait. Each of them looks for itself after
// that.
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { doneChannel } from "./job.ts";

/** What somebody waits for: the end of a job or of a group, or with `any` every end that is told. */
export type AwaitedEnd = { readonly job: number } | { readonly group: number } | "any";

export type Waiter = {
  /** Set once nothing more is to be waited for. */
  readonly over: "timeout" | "closed" | undefined;
  /** Resolves when there is reason to look: it is asked for before a look, so that nothing falls in between. */
  news(): Promise<void>;
  /** From now on only the end of this is news. */
  waitFor(what: AwaitedEnd): void;
  /** There is reason to look again. */
  wake(): void;
  expire(): void;
  leave(): void;
};

type Waiters = { join(): Waiter; lookAgain(): void; end(): void };

type Waiting = {
  /** Undefined while it looks. */
  what: AwaitedEnd | undefined;
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

/** Everybody looks for themselves: something else than an end may have changed what they wait for. */
export function lookAgain(store: Store): void {
  waitersOf.get(store)?.lookAgain();
}

/** The book is being closed: everybody is told, and whoever comes later hears it at once. */
export function endWaiting(store: Store): void {
  waitersOf.get(store)?.end();
  const nobody = { lookAgain: () => undefined, end: () => undefined };
  waitersOf.set(store, { join: () => newWaiter(newWaiting("closed"), idle), ...nobody });
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
    const awaited = new Map([...all].map((each) => [each, each.what]));
    const seqs = [...awaited.values()].filter((what) => typeof what === "object");
    const [jobs, groups] = await Promise.all([
      readEndedJobs([...new Set(seqs.flatMap((what) => ("job" in what ? what.job : [])))]),
      readEndedGroups([...new Set(seqs.flatMap((what) => ("group" in what ? what.group : [])))]),
    ]);
    for (const [each, what] of awaited) {
      if (what === undefined) continue;
      const has = what === "any" || ("job" in what ? jobs?.has(what.job) : groups?.has(what.group));
      if (has ?? true) each.wake();
    }
  }

  // A job has ended when it has left the line. When the read fails, each waiter looks for itself and learns why.
  async function readEndedJobs(seqs: readonly number[]): Promise<Set<number> | undefined> {
    const open = await readSeqs(sql`select seq from daybook_line where seq ${anyOf("integer", seqs)}`, seqs);
    return open && new Set(seqs.filter((seq) => !open.has(seq)));
  }

  async function readEndedGroups(seqs: readonly number[]): Promise<Set<number> | undefined> {
    const among = anyOf("integer", seqs);
    return readSeqs(sql`select seq from daybook_job_group where seq ${among} and finished_at is not null`, seqs);
  }

  async function readSeqs(statement: Sql, seqs: readonly number[]): Promise<Set<number> | undefined> {
    if (seqs.length === 0) return new Set();
    const rows = await store.read<{ seq: number }>(statement).catch(() => undefined);
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
    lookAgain() {
      for (const each of all) each.wake();
    },
    end() {
      for (const each of all) Object.assign(each, { over: "closed" }).wake();
    },
  };
}

type Hub = { heard(): number; ask(): void; leave(): void };

const idle: Hub = { heard: () => 0, ask: () => undefined, leave: () => undefined };

function newWaiting(over?: "closed"): Waiting {
  return { what: undefined, heard: 0, over, wake: () => undefined };
}

function newWaiter(waiting: Waiting, hub: Hub): Waiter {
  return {
    get over() {
      return waiting.over;
    },
    news() {
      const { promise, resolve } = Promise.withResolvers<void>();
      Object.assign(waiting, { what: undefined, heard: hub.heard(), wake: resolve });
      return promise;
    },
    waitFor(what) {
      waiting.what = what;
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
