// Live listeners without a book around them: a bus on a clock that the test moves, and the rows they leave.
import { createIds, seededRandom } from "../../../src/core/id.ts";
import { manualClock, type ManualClock } from "../../../src/core/manual-clock.ts";
import { openLiveBus, type LiveBus } from "../../../src/events/live/bus.ts";
import { defineLive, type LiveOptions } from "../../../src/events/live/define.ts";
import { LiveContext } from "../../../src/events/live/live-run.ts";
import type { EndedRun } from "../../../src/telemetry/run-batch.ts";
import type { RunLogRow } from "../../../src/telemetry/log.ts";

export type TestLive = {
  readonly clock: ManualClock;
  readonly bus: LiveBus;
  /** The rows of ended runs, in the order of their ends. */
  readonly runs: EndedRun[];
  readonly logs: RunLogRow[];
  /** How many events found their listener too busy. */
  readonly busy: () => number;
  listen<Payload>(name: string, options: Omit<LiveOptions<Payload, LiveContext>, "live">): () => Promise<unknown>;
  emit(topic: string, payload?: unknown): number;
  counts(name: string): Record<string, unknown>;
};

export function openLive(): TestLive {
  const clock = manualClock();
  const runs: EndedRun[] = [];
  const logs: RunLogRow[] = [];
  let events = 0;
  const bus = openLiveBus({
    clock,
    ids: createIds(clock, seededRandom(1)),
    session: () => ({ id: "session", seq: 7 }),
    contextFor: (run) => new LiveContext(run),
    writer: {
      ending: false,
      open: new Set(),
      ended: (run) => void runs.push(run),
      log: (line) => void logs.push(line),
      tooBusy: (count) => void (events += count),
      dropped: { runs: 0, logs: 0, events: 0 },
      drain: () => Promise.resolve(),
    },
  });
  return {
    clock,
    bus,
    runs,
    logs,
    busy: () => events,
    listen: (name, options) => bus.attach(defineLive(name, { ...options, live: true }), "default").detach,
    emit: (topic, payload = {}) => bus.emit("default", topic, payload),
    counts(name) {
      const { name: _name, hears: _hears, ...rest } = bus.list("default").find((each) => each.name === name) ?? {};
      return rest;
    },
  };
}

/** A handler whose runs end when the test says so. */
export function heldHandler<Payload>(): {
  readonly begun: { readonly payload: Payload; readonly context: LiveContext; end(): void; fail(error: Error): void }[];
  run(payload: Payload, context: LiveContext): Promise<void>;
} {
  const begun: ReturnType<typeof heldHandler<Payload>>["begun"] = [];
  return {
    begun,
    run(payload, context) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      begun.push({ payload, context, end: resolve, fail: reject });
      return promise;
    },
  };
}
