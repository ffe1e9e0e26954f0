// Three of the gates that an event passes on its way to a handler (hearing.ts): the schema, `for`, and the mode.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Clock, Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { fittingPayload, unfitPayload } from "../define.ts";
import type { LiveEvent } from "../event.ts";
import type { LiveDefinition } from "./define.ts";
import { LiveRun, noLongerListening, restarted, type LiveParts } from "./live-run.ts";

type FitParts = {
  pass(event: LiveEvent): void;
  fail(event: LiveEvent, error: Error): void;
  tooBusy(): void;
};

/** A listener that names an event's definition gets the payload as that event's schema returns it. Most schemas answer at once;
 *  while one has not answered, later events wait behind it, so the order stays. */
export function createFit(definition: LiveDefinition, { pass, fail, tooBusy }: FitParts): (event: LiveEvent) => void {
  const schemas = new Map(definition.events.map(({ topic, schema }) => [topic, schema]));
  let line: Promise<void> | undefined;
  let inLine = 0;

  function finish(event: LiveEvent, result: StandardSchemaV1.Result<unknown>): void {
    let payload;
    try {
      payload = fittingPayload(event.topic, result);
    } catch (error) {
      return fail(event, unfitPayload(error));
    }
    pass({ ...event, payload });
  }

  function wait(event: LiveEvent, answer: Promise<StandardSchemaV1.Result<unknown>> | undefined): void {
    // A rejection is reported when the event's turn comes, not before.
    answer?.catch(() => undefined);
    if (inLine >= definition.backlog) return tooBusy();
    inLine += 1;
    const turn = (line ?? Promise.resolve()).then(async () => {
      try {
        if (answer === undefined) pass(event);
        else finish(event, await answer);
      } catch (error) {
        fail(event, unfitPayload(error));
      }
      inLine -= 1;
      if (inLine === 0) line = undefined;
    });
    line = turn;
  }

  return (event) => {
    const schema = schemas.get(event.topic);
    if (schema === undefined) return line === undefined ? pass(event) : wait(event, undefined);
    let result;
    try {
      result = schema["~standard"].validate(event.payload);
    } catch (error) {
      return fail(event, unfitPayload(error));
    }
    if (result instanceof Promise) wait(event, result);
    else if (line === undefined) finish(event, result);
    else wait(event, Promise.resolve(result));
  };
}

/** `for`: the listener acts on an event once its predicate has held for a while, and once for each time that it begins to hold.
 *  Each topic has its own timer: a door that closes says nothing about the window. */
type Hold = {
  /** The predicate holds for this event. */
  holds(event: LiveEvent): void;
  /** The predicate does not hold, or it threw. */
  ends(topic: string): void;
  /** Returns the events that it would have acted on. */
  stop(): LiveEvent[];
};

type Held = { last: LiveEvent; timer: Timer | undefined };

/** Calls `forget` when it gives up a topic because too many are timed at once. */
export function createHold(clock: Clock, forMs: number, act: (event: LiveEvent) => void, forget: () => void): Hold {
  const topics = new Map<string, Held>();

  function ends(topic: string): void {
    topics.get(topic)?.timer?.cancel();
    topics.delete(topic);
  }

  return {
    holds(event) {
      const known = topics.get(event.topic);
      if (known !== undefined) {
        known.last = event;
        return;
      }
      const [oldest] = topics.size < limits.liveTopicsMax ? [] : topics.entries();
      if (oldest !== undefined) {
        if (oldest[1].timer !== undefined) forget();
        ends(oldest[0]);
      }
      const held: Held = { last: event, timer: undefined };
      held.timer = clock.after(forMs, () => {
        held.timer = undefined;
        act(held.last);
      });
      topics.set(event.topic, held);
    },
    ends,
    stop() {
      const timed = [...topics.values()].filter(({ timer }) => timer !== undefined);
      for (const { timer } of timed) timer?.cancel();
      topics.clear();
      return timed.map(({ last }) => last);
    },
  };
}

/** What happens to an event while runs of earlier events go on:
 *
 *    parallel   begins, up to `concurrency`       single    is dropped
 *    restart    cancels the run, then begins      queued    waits, up to `backlog` */
type Mode = {
  act(event: LiveEvent): void;
  readonly running: number;
  readonly waiting: number;
  /** Drops what waits, and returns it. */
  drop(): LiveEvent[];
  /** Cancels the runs and resolves once they have ended. */
  stop(): Promise<void>;
};

type ModeParts = LiveParts & {
  /** An event was dropped because too many run or wait. */
  tooBusy(): void;
  /** A newer event replaced one that waited. */
  replaced(): void;
  began(): void;
};

export function createMode(definition: LiveDefinition, parts: ModeParts): Mode {
  const { mode, concurrency, backlog } = definition;
  const running = new Set<LiveRun>();
  const waiting: LiveEvent[] = [];
  const placesMax = mode === "parallel" ? concurrency : 1;
  const waitingMax = mode === "queued" ? backlog : mode === "restart" ? 1 : 0;
  let beginning = false;
  let idle: (() => void) | undefined;
  let stopped: Promise<void> | undefined;

  // A loop, not a call from each end to the next start: a thousand queued handlers that end at once would overflow the stack.
  function beginNext(): void {
    if (beginning) return;
    beginning = true;
    try {
      while (running.size < placesMax) {
        const event = waiting.shift();
        if (event === undefined) break;
        begin(event);
      }
    } finally {
      beginning = false;
    }
  }

  function begin(event: LiveEvent): void {
    // Each run that a crash ends makes room for the next event, whose handler must not act in a process that is about to be gone.
    if (parts.writer.ending) return parts.tooBusy();
    const run = new LiveRun(parts, definition, event, ended);
    running.add(run);
    parts.began();
    run.begin();
  }

  function ended(run: LiveRun): void {
    running.delete(run);
    if (waiting.length > 0) beginNext();
    if (running.size === 0) idle?.();
  }

  async function stop(): Promise<void> {
    if (running.size === 0) return;
    const ends = new Promise<void>((resolve) => (idle = resolve));
    for (const run of running) run.abort(noLongerListening());
    await ends;
  }

  return {
    get running() {
      return running.size;
    },
    get waiting() {
      return waiting.length;
    },
    act(event) {
      if (running.size < placesMax) return begin(event);
      if (mode === "restart") {
        for (const run of running) run.abort(restarted());
        if (waiting.pop() !== undefined) parts.replaced();
      }
      if (waiting.length >= waitingMax) return parts.tooBusy();
      waiting.push(event);
      beginNext();
    },
    drop() {
      const dropped = waiting.splice(0);
      for (const _ of dropped) parts.tooBusy();
      return dropped;
    },
    stop: () => (stopped ??= stop()),
  };
}
