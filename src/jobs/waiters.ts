// Those who wait in this process for jobs or groups to end, or for a queue to be let go. Whoever ends a job that is marked
// `awaited`, a group or a reservation wakes `doneChannel`; then one read finds out which of ours have ended, however many
// wait. Each of them looks for itself after that. Nothing is polled.
import { durationMs, formatDuration, type Duration } from "../core/duration.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { doneChannel } from "./job.ts";

export type AwaitOptions = {
  /** How long to wait; default without limit. What is waited for goes on either way. */
  readonly timeout?: Duration;
};

/** The end of a job or of a group, or with `any` every end that is told. */
type AwaitedEnd = { readonly job: number } | { readonly group: number } | "any";

/** What a look found: the end, what to wait for and after which time to look all the same, or nothing that holds, so that it
 *  looks again. */
export type Look<T> = { readonly ended: T } | { readonly waitsFor: AwaitedEnd; readonly atMostMs?: number } | "again";

type Waiting = {
  /** Undefined while it looks. */
  what: AwaitedEnd | undefined;
  /** Its time is over. */
  expired: boolean;
  wake(): void;
};

type Waiters = {
  readonly all: Set<Waiting>;
  /** How many wakes have been heard. */
  heard: number;
  /** A read has been asked for and has not begun. */
  asked: boolean;
  closed: boolean;
  stopListening: (() => void) | undefined;
};

const known = new WeakMap<Store, Waiters>();

function waitersOf(store: Store): Waiters {
  let waiters = known.get(store);
  if (waiters === undefined) {
    waiters = { all: new Set(), heard: 0, asked: false, closed: false, stopListening: undefined };
    known.set(store, waiters);
  }
  return waiters;
}

/** Everybody looks for themselves: something else than an end may have changed what they wait for. */
export function lookAgain(store: Store): void {
  for (const each of waitersOf(store).all) each.wake();
}

/** The book is being closed: everybody is told, and whoever comes later hears it at once. */
export function endWaiting(store: Store): void {
  const waiters = waitersOf(store);
  waiters.closed = true;
  for (const each of waiters.all) each.wake();
}

export function awaitMs(options: AwaitOptions, verb: string): number {
  refuseUnknown(options, ["timeout"], verb);
  return options.timeout === undefined ? limits.durationMsMax : durationMs(options.timeout, "timeout");
}

/** Waits for the end of `what`: looks, and looks again when there is news of it. `look` is told once the time is over, as words,
 *  and throws then unless it finds the end. */
export async function awaitEnd<T>(
  store: Store,
  what: string,
  timeoutMs: number,
  look: (waited: string | undefined) => Promise<Look<T>>,
): Promise<T> {
  const waiters = waitersOf(store);
  const waiting: Waiting = { what: undefined, expired: false, wake: () => undefined };
  const closed = (): DaybookError => new DaybookError("closed", `the book was closed while waiting for ${what}`);
  if (waiters.closed) throw closed();
  const expire = (): void => Object.assign(waiting, { expired: true }).wake();
  // It keeps the process alive as well: somebody waits.
  const timer = store.clock.after(timeoutMs, expire, { keepAlive: true });
  waiters.all.add(waiting);
  waiters.stopListening ??= store.onWake((channel) => {
    if (channel === doneChannel || channel === null) hear(store, waiters);
  });
  try {
    for (;;) {
      // Listening comes first and then the look: an end is seen, or it is heard of.
      const news = Promise.withResolvers<void>();
      const { heard } = waiters;
      Object.assign(waiting, { what: undefined, wake: news.resolve });
      if (waiters.closed) throw closed();
      const found = await look(waiting.expired ? formatDuration(timeoutMs) : undefined);
      if (found === "again") continue;
      if ("ended" in found) return found.ended;
      waiting.what = found.waitsFor;
      // What was heard while it looked may have been about this; one read for all finds out.
      if (heard !== waiters.heard) ask(store, waiters);
      if (waiting.expired || waiters.closed) continue;
      const atMost = found.atMostMs === undefined ? undefined : store.clock.after(found.atMostMs, news.resolve);
      await news.promise;
      atMost?.cancel();
    }
  } finally {
    timer.cancel();
    waiters.all.delete(waiting);
    if (waiters.all.size === 0) {
      waiters.stopListening?.();
      waiters.stopListening = undefined;
    }
  }
}

function hear(store: Store, waiters: Waiters): void {
  waiters.heard++;
  ask(store, waiters);
}

// What is woken together is looked for together.
function ask(store: Store, waiters: Waiters): void {
  if (waiters.asked) return;
  waiters.asked = true;
  void store.clock.nextTurn().then(() => tellEnded(store, waiters));
}

async function tellEnded(store: Store, waiters: Waiters): Promise<void> {
  waiters.asked = false;
  const awaited = new Map([...waiters.all].map((each) => [each, each.what]));
  const seqs = [...awaited.values()].filter((what) => typeof what === "object");
  const [open, ended] = await Promise.all([
    readSeqs(store, [...new Set(seqs.flatMap((what) => ("job" in what ? what.job : [])))], openJobs),
    readSeqs(store, [...new Set(seqs.flatMap((what) => ("group" in what ? what.group : [])))], endedGroups),
  ]);
  for (const [each, what] of awaited) {
    if (what === undefined) continue;
    // A job has ended when it has left the line.
    const has = what === "any" || ("job" in what ? open && !open.has(what.job) : ended?.has(what.group));
    if (has ?? true) each.wake();
  }
}

const openJobs = sql`select seq from daybook_line where true`;
const endedGroups = sql`select seq from daybook_job_group where finished_at is not null`;

// When the read fails, each waiter looks for itself and learns why.
async function readSeqs(store: Store, seqs: readonly number[], from: Sql): Promise<Set<number> | undefined> {
  if (seqs.length === 0) return new Set();
  const among = sql`${from} and seq ${anyOf("integer", seqs)}`;
  const rows = await store.read<{ seq: number }>(among).catch(() => undefined);
  return rows && new Set(rows.map((row) => row.seq));
}
