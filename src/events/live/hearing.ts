// One live listener hearing the events of one tenant. Each event passes the same gates, in this order:
//
//   schema ──► where ──► for ──► debounce ──► throttle ──► once ──► mode ──► run
import type { Timer } from "../../core/clock.ts";
import { describeError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { LiveEvent } from "../event.ts";
import type { LiveDefinition } from "./define.ts";
import { createFit, createHold, createMode } from "./gates.ts";
import { LiveRun, type LiveParts } from "./live-run.ts";
import { ask, type Predicate } from "./where.ts";

export type HearingCounts = {
  /** Events of its topics. */
  readonly heard: number;
  /** Runs that began. */
  readonly runs: number;
  /** Events that a debounce, a throttle or a restart left out, as it should. */
  readonly leftOut: number;
  /** Events that were dropped because it was too busy. */
  readonly dropped: number;
  readonly running: number;
  readonly waiting: number;
};

export type Hearing = {
  hear(event: LiveEvent): void;
  readonly counts: HearingCounts;
  /** Hears nothing more and cancels its runs; resolves once they have ended, with the events that it would have acted on later. */
  stop(): Promise<readonly Pending[]>;
};

/** Events of one topic that a listener had heard and would have acted on later, had it not been stopped. */
export type Pending = {
  readonly topic: string;
  /** What they waited for: quiet (`debounce`), that it holds long enough (`for`), or the end of a run before them (`mode`). */
  readonly waits: "debounce" | "for" | "mode";
  readonly events: number;
};

/** Calls `onDone` when a listener that acts once has acted. */
export function startHearing(definition: LiveDefinition, parts: LiveParts, onDone: () => void): Hearing {
  const { clock, writer } = parts;
  const { debounceMs, throttleMs, forMs, once } = definition;
  const { where: predicate } = definition;
  const recent = predicate === null ? undefined : createRecent();
  const counts = { heard: 0, runs: 0, leftOut: 0, dropped: 0 };
  let done = false;
  let quiet: { readonly timer: Timer; readonly event: LiveEvent } | undefined;
  let throttledUntilMs = -Infinity;

  const drop = (): void => {
    counts.dropped += 1;
    writer.tooBusy(1);
  };
  const mode = createMode(definition, {
    ...parts,
    tooBusy: drop,
    replaced: () => void (counts.leftOut += 1),
    began: () => void (counts.runs += 1),
  });
  const hold = forMs === null ? undefined : createHold(clock, forMs, settle, drop);

  const fit =
    definition.events.length === 0 ? undefined : createFit(definition, { pass: consider, fail, tooBusy: drop });

  function hear(event: LiveEvent): void {
    if (done) return;
    counts.heard += 1;
    if (fit === undefined) consider(event);
    else fit(event);
  }

  function consider(event: LiveEvent): void {
    if (done) return;
    if (predicate !== null) {
      const previous = recent?.get(event.topic) ?? null;
      recent?.set(event);
      try {
        if (!ask(predicate, event.payload, { event, previous })) return hold?.ends(event.topic);
      } catch (error) {
        hold?.ends(event.topic);
        return fail(event, predicateError(predicate, error));
      }
    }
    if (hold === undefined) settle(event);
    else hold.holds(event);
  }

  function settle(event: LiveEvent): void {
    if (debounceMs === null) return admit(event);
    if (quiet !== undefined) counts.leftOut += 1;
    quiet?.timer.cancel();
    const timer = clock.after(debounceMs, () => {
      quiet = undefined;
      admit(event);
    });
    quiet = { timer, event };
  }

  function admit(event: LiveEvent): void {
    if (throttleMs !== null) {
      const nowMs = clock.monotonic();
      if (nowMs < throttledUntilMs) return void (counts.leftOut += 1);
      throttledUntilMs = nowMs + throttleMs;
    }
    if (once) {
      // Before the handler begins: an event that the handler emits must not make it act again.
      end();
      onDone();
    }
    mode.act(event);
  }

  // A failed schema or predicate is recorded as a failed run: otherwise a light would stay dark and nothing would say why.
  function fail(event: LiveEvent, error: Error): void {
    counts.runs += 1;
    new LiveRun(parts, definition, event, () => undefined).fail(error);
  }

  /** Hears nothing more. Returns what waited for its time. */
  function end(): { readonly debounce: LiveEvent[]; readonly for: LiveEvent[] } {
    done = true;
    quiet?.timer.cancel();
    const last = quiet === undefined ? [] : [quiet.event];
    counts.leftOut += last.length;
    quiet = undefined;
    return { debounce: last, for: hold?.stop() ?? [] };
  }

  // It is a run of its own, because nothing else would say why the light stayed on.
  function skip(event: LiveEvent, waits: "debounce" | "for"): void {
    new LiveRun(parts, definition, event, () => undefined).skip(waits);
  }

  return {
    hear,
    get counts() {
      return { ...counts, running: mode.running, waiting: mode.waiting };
    },
    async stop() {
      const timed = end();
      for (const waits of ["debounce", "for"] as const) for (const event of timed[waits]) skip(event, waits);
      const pending = Object.entries({ ...timed, mode: mode.drop() }) as [Pending["waits"], LiveEvent[]][];
      await mode.stop();
      return pending.flatMap(([waits, events]) =>
        [...Map.groupBy(events, ({ topic }) => topic)].map(([topic, all]) => ({ topic, waits, events: all.length })),
      );
    },
  };
}

function predicateError(asked: Predicate, cause: unknown): Error {
  const error = new Error(`where ${asked.describe()}: ${describeError(cause).message}`, { cause });
  error.name = "PredicateError";
  return error;
}

/** The last event of each topic, for predicates that compare with it and for listeners that attach late. It forgets the topic
 *  heard longest ago first. */
export type Recent = {
  get(topic: string): LiveEvent | undefined;
  set(event: LiveEvent): void;
  values(): Iterable<LiveEvent>;
};

export function createRecent(): Recent {
  const byTopic = new Map<string, LiveEvent>();
  return {
    get: (topic) => byTopic.get(topic),
    set(event) {
      // A map keeps the order of insertion: delete first, so that the topic moves to the end.
      byTopic.delete(event.topic);
      byTopic.set(event.topic, event);
      if (byTopic.size <= limits.liveTopicsMax) return;
      const [oldest] = byTopic.keys();
      if (oldest !== undefined) byTopic.delete(oldest);
    },
    values: () => byTopic.values(),
  };
}
