// What becomes of an event that its listener is to act on, while earlier ones may still be running:
//
//   parallel   begins, up to so many at once     single    is dropped
//   restart    cancels what runs, then begins    queued    waits its turn, up to so many
import type { LiveDefinition } from "./define.ts";
import type { LiveEvent } from "./live-event.ts";
import { LiveRun, noLongerListening, restarted, type LiveParts } from "./live-run.ts";

export type Mode = {
  act(event: LiveEvent): void;
  readonly running: number;
  readonly waiting: number;
  /** Cancels what runs and resolves once it has ended. */
  stop(): Promise<void>;
};

export type ModeParts = LiveParts & {
  /** An event came too soon and nobody will act on it. */
  tooBusy(): void;
  /** A newer event took the place of one that waited. */
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

  // A loop, not a call from each end to the next: a thousand waiting handlers that end at once would fill the stack.
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
    async stop() {
      for (const _ of waiting.splice(0)) parts.tooBusy();
      if (running.size === 0) return;
      const ends = new Promise<void>((resolve) => (idle = resolve));
      for (const run of running) run.abort(noLongerListening());
      await ends;
    },
  };
}
