// Units: the work that one transaction does. That of a user's `write` is watched, because one that misbehaves would hold up
// every caller's commit. It must await every operation it starts, await nothing else for long, and leave its tx alone once it has
// ended; the verbs of the book are refused inside it.
import { AsyncLocalStorage } from "node:async_hooks";
import { afterEither, systemClock, type Clock, type Timer } from "../core/clock.ts";
import { calledAt, calledFrom, invalid, showPlace, warnOf, type DaybookError, type Place } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { usedAfterEnd, type Awaitable, type Store, type Tx } from "./store.ts";
import { readAs } from "./reading.ts";
import { createWriteTurns, type Waits } from "./write-turns.ts";

export type Unit = {
  /** Wraps what a verb of the unit's tx returns, so that a forgotten await is noticed, and an error says where it was called. */
  track<T>(verb: string, place: Place, start: () => Awaitable<T>): Promise<T>;
  /** Operations may begin a moment after the caller asked for them: the end of the unit waits for a turn of the loop, so that one
   *  that is not awaited is found. */
  linger(): void;
};

const running = new AsyncLocalStorage<UnitState>();

type UnitState = { readonly of: object; readonly verb: string; ended: boolean };

/** How a unit's transaction came about. One that was joined is the user's own, so it may wait for whatever it likes. */
export type Origin = { readonly joined: boolean };

/** Throws when called from inside a user's unit of the same store: `book` there would wait for the very transaction it
 *  is part of, or read past it. */
export function refuseInsideUnit(
  verb: string,
  store: object,
  instead = "use the tx that your function was given instead",
): void {
  const unit = running.getStore();
  if (unit?.of === store && !unit.ended) {
    throw invalid(`${verb} was called inside ${unit.verb}: ${instead}`);
  }
}

/** Throws when a verb of the book may not be used here: inside a unit, or because the book is being closed. */
export function refuseVerb(verb: string, store: Pick<Store, "refuse">, instead?: string): void {
  store.refuse?.(verb);
  refuseInsideUnit(verb, store, instead);
}

/** Runs `body` as a user's unit. Rejects when it breaks a rule; the caller then undoes what it wrote. */
export async function runUnit<T>(
  store: { clock: Clock },
  body: (unit: Unit) => Awaitable<T>,
  { joined }: Origin = { joined: false },
): Promise<T> {
  const { clock } = store;
  const state: UnitState = { of: store, verb: joined ? "book.join" : "book.write", ended: false };
  // Those that the user's function does not await yet, and those that have not ended.
  const pending = new Set<Begun>();
  let inside = 0; // operations under way: time spent in them is the database's, not foreign
  let foreignMs = 0;
  // What a unit waits for may live by the book's clock or not; on one that a test has stopped it would wait for ever.
  const elapsedMs = (): number => clock.monotonic() + (clock === systemClock ? 0 : systemClock.monotonic());
  let outsideSince = elapsedMs();
  let lingers = false;

  const unit: Unit = {
    linger: () => void (lingers = true),
    track<V>(verb: string, place: Place, start: () => Awaitable<V>): Promise<V> {
      if (state.ended) throw usedAfterEnd(verb);
      const begun: Begun = { verb, place, awaited: false, ended: false };
      pending.add(begun);
      const note = (what: "awaited" | "ended"): void => {
        begun[what] = true;
        if (begun.awaited && begun.ended) pending.delete(begun);
      };
      return new Operation(run(begun, start, note), () => note("awaited")) as unknown as Promise<V>;
    },
  };
  async function run<V>({ place }: Begun, start: () => Awaitable<V>, note: (what: "ended") => void): Promise<V> {
    if (inside++ === 0) foreignMs += elapsedMs() - outsideSince;
    try {
      return await start();
    } catch (error) {
      throw calledAt(error, place);
    } finally {
      if (--inside === 0) outsideSince = elapsedMs();
      note("ended");
    }
  }

  let timer: Timer | undefined;
  const overdue = new Promise<never>((_, reject) => {
    const look = (): void => {
      const spent = foreignMs + (inside === 0 ? elapsedMs() - outsideSince : 0);
      if (spent >= limits.foreignAwaitMsMax) reject(awaitedForeign(spent));
      else timer = afterEither(clock, Math.max(1, limits.foreignAwaitMsMax - spent), look, { keepAlive: true });
    };
    if (!joined) timer = afterEither(clock, limits.foreignAwaitMsMax, look, { keepAlive: true });
  });
  try {
    const result = await Promise.race([running.run(state, async () => body(unit)), overdue]);
    if (lingers) await clock.nextTurn();
    // One may be waited for by something that the unit itself does not wait for.
    if (pending.size > 0) throw notAwaited([...pending]);
    return result;
  } finally {
    state.ended = true;
    timer?.cancel();
  }
}

type Begun = { readonly verb: string; readonly place: Place; awaited: boolean; ended: boolean };

/** A promise that knows whether it is awaited. The work has begun either way. */
class Operation<T> implements PromiseLike<T> {
  readonly #settled: Promise<T>;
  readonly #awaited: () => void;

  constructor(settled: Promise<T>, awaited: () => void) {
    this.#settled = settled;
    this.#awaited = awaited;
    settled.catch(() => undefined); // an operation that is not awaited fails its unit, not the process
  }

  // oxlint-disable-next-line unicorn/no-thenable -- being awaited is the one thing this class is here to notice
  then<A = T, B = never>(
    done?: ((value: T) => Awaitable<A>) | null,
    failed?: ((reason: unknown) => Awaitable<B>) | null,
  ): Promise<A | B> {
    this.#awaited();
    return this.#settled.then(done, failed);
  }

  catch<B = never>(failed?: ((reason: unknown) => Awaitable<B>) | null): Promise<T | B> {
    return this.then(undefined, failed);
  }

  finally(run?: (() => void) | null): Promise<T> {
    this.#awaited();
    return this.#settled.finally(run);
  }
}

const namedMax = 3;

function notAwaited(pending: readonly Begun[]): DaybookError {
  const names = pending.slice(0, namedMax).map(({ verb, place }) => {
    const at = showPlace(place);
    return at === undefined ? verb : `${verb} (${at})`;
  });
  if (pending.length > namedMax) names.push(`${pending.length - namedMax} more`);
  const [were, them] = pending.length === 1 ? ["was", "it"] : ["were", "each of them"];
  const error = invalid(`${names.join(", ")} ${were} not awaited, so the transaction was undone: await ${them}`);
  for (const { place } of pending.slice(0, 1)) calledAt(error, place);
  return error;
}

function awaitedForeign(ms: number): DaybookError {
  return invalid(
    `the transaction waited ${Math.round(ms)} ms for something that is not the book, so it was undone: ` +
      "do network calls and sleeps before or after book.write",
  );
}

/** Verbs of the book, which run outside of any transaction: inside `write` a read through the book would show what was there before
 *  the transaction, which is hardly ever meant, so the verbs refuse that. Each reads in its own name, as one of this tenant's reads. */
export function outsideUnits<Verbs extends object>({ store, tenant }: Of, what: string, verbs: Verbs): Verbs {
  const msMax = reports.has(what) ? limits.reportMs : limits.readMs;
  return wrapVerbs(verbs, (name, call) => {
    const verb = `book.${what}.${name}`;
    return (...args) =>
      namingCaller(() => {
        refuseVerb(verb, store);
        refuseAlien(verb, args);
        return readAs({ tenant, verb, msMax }, () => call(...args));
      });
  });
}

/** Refuses what no verb takes, before a message is made of it, which fails for a symbol, or a back end reads it, which differ about
 *  bytes. What else is wrong the verb itself says best. */
export function refuseAlien(verb: string, given: readonly unknown[]): void {
  for (const [index, each] of given.entries()) {
    const isAlien = typeof each === "symbol" || typeof each === "bigint" || ArrayBuffer.isView(each);
    if (!isAlien) continue;
    const what = ArrayBuffer.isView(each) ? "bytes" : quote(each);
    throw invalid(`argument ${index + 1} of ${verb} is ${what}, which no verb takes: give text, or an object`);
  }
}

/** Runs a verb. When it fails with an error of ours, the error names the caller that awaits the verb. */
export async function namingCaller<T>(verb: () => Awaitable<T>): Promise<T> {
  try {
    return await verb();
  } catch (error) {
    throw calledFrom(error);
  }
}

type Verb = (...args: unknown[]) => unknown;

export function wrapVerbs<Verbs extends object>(verbs: Verbs, wrap: (name: string, verb: Verb) => Verb): Verbs {
  const entries = Object.entries(verbs) as [string, Verb][];
  return Object.fromEntries(entries.map(([name, verb]) => [name, wrap(name, verb)])) as Verbs;
}

export type Of = { readonly store: Store; readonly tenant: string };

/** Whose verbs sum up a stretch of time: they look at more than a list does. */
const reports: ReadonlySet<string> = new Set(["telemetry", "runs"]);

/** Runs what a unit asked for once its transaction is on disk. The commit is kept whatever happens now, so a callback that fails
 *  fails neither its unit nor the others: it is a warning. */
export function runAfterCommit(callbacks: readonly (() => void)[]): void {
  for (const run of callbacks) shielded(run);
}

/** Tells every listener, also those after one that fails. */
export function tellAll(listeners: Iterable<(channel: string | null) => void>, channel: string | null): void {
  for (const hear of listeners) shielded(() => hear(channel));
}

function shielded(run: () => void): void {
  try {
    run();
  } catch (error) {
    warnOf("DAYBOOK_AFTER_COMMIT", "something failed after a commit (the commit itself is kept)", error);
  }
}

type Waiting<Asked, Made> = Waits & Pick<PromiseWithResolvers<Made>, "resolve" | "reject"> & { readonly asked: Asked };

/** Makes one unit of what callers ask for at the same time: one statement writes it all, and each caller has its own answer. What is
 *  asked for while a unit is on its way is in the next one. `write` answers all that it is given, in their order; at most `most`
 *  of them are a unit, to which tenants give in turn. */
export function together<Asked extends { readonly tenant: string }, Made>(
  write: (tx: Tx, all: readonly Asked[]) => Promise<readonly Made[]>,
  most: number,
): (store: Store, asked: Asked) => Promise<Made> {
  const turns = createWriteTurns<Waiting<Asked, Made>>(() => 0);
  let arrived = 0;
  let underWay = false;

  function takeNext(): Waiting<Asked, Made>[] {
    const taken = turns.take(most);
    for (const { turn } of taken) turns.used(turn, 1, 0);
    return taken;
  }

  async function writeNext(store: Store): Promise<void> {
    let group: Waiting<Asked, Made>[] | undefined;
    // Taken when the unit runs, and kept: a unit may run more than once.
    const unit = (tx: Tx): Promise<readonly Made[]> => {
      if (group === undefined) {
        group = takeNext();
        underWay = false;
        if (turns.size > 0) begin(store);
      }
      const all = group.map(({ asked }) => asked);
      return write(tx, all);
    };
    try {
      const made = await store.write(unit, { by: "shared", turn: "together" });
      for (const [index, each] of (group ?? []).entries()) each.resolve(made[index] as Made);
    } catch (error) {
      // The store refused the unit before it ran: all callers that wait are told.
      if (group === undefined) underWay = false;
      for (const each of group ?? turns.remove()) {
        // One that cannot be written must not fail its neighbours.
        if (group === undefined || group.length === 1) each.reject(error);
        else
          store
            .write((tx) => write(tx, [each.asked]), { by: "shared", turn: "together" })
            .then(([made]) => each.resolve(made as Made), each.reject);
      }
    }
  }

  function begin(store: Store): void {
    if (underWay) return;
    underWay = true;
    void writeNext(store);
  }

  return (store, asked) => {
    const { promise, resolve, reject } = Promise.withResolvers<Made>();
    turns.add({ turn: asked.tenant, arrived: ++arrived, asked, resolve, reject });
    begin(store);
    return promise;
  };
}
