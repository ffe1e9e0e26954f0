// Records the runs of live listeners without holding up their work: a handler that ends leaves a row in memory, and batches of
// rows go into the book. The session counts what could not be recorded.
import type { Timer } from "../core/clock.ts";
import { asDaybookError, type ErrorCode, type ErrorDescription } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import type { Store } from "../storage/store.ts";
import type { RunLogRow } from "./log.ts";
import { noDrops, unwritten, writeRunBatch, type Dropped, type EndedRun, type RunBatch } from "./run-batch.ts";
import type { SessionKey } from "./session.ts";

export type RunWriter = {
  /** Runs that have begun and not ended. */
  readonly open: Set<OpenRun>;
  /** The process is about to end with an error: no run may begin any more. */
  readonly ending: boolean;
  ended(run: EndedRun): void;
  log(line: RunLogRow): void;
  /** Counts events that a listener was too busy to hear. */
  tooBusy(events: number): void;
  /** Everything that was dropped so far, including what the book does not know yet. */
  readonly dropped: Dropped;
  /** Resolves when everything is written, or after `limits.runDrainMs`; the rest is dropped then. */
  drain(): Promise<void>;
};

/** `crashed`: the process is about to end. It ends the run, with the error if that is its own. */
export type OpenRun = { crashed(error: ErrorDescription): void };

/** Runs or lines were dropped. */
export const runsDropped = defineFact<Dropped>("runs.dropped");

// Waiting does not help against these errors, so a batch that keeps meeting one is dropped.
const lasting: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["invalid", "internal", "incompatible", "closed"]);
const triesMax = 3;
const retryMsMax = 5000;

/** Calls `onWritten` when runs are on disk. */
export function openRunWriter(store: Store, session: () => SessionKey, onWritten?: () => void): RunWriter {
  const { clock } = store;
  let runs: EndedRun[] = [];
  let logs: RunLogRow[] = [];
  // `told` is what the book knows of `dropped`, and of which session: a session that was replaced keeps its own numbers.
  let dropped = noDrops;
  let told: { readonly seq: number; readonly dropped: Dropped } = { seq: 0, dropped: noDrops };
  let inHand: RunBatch | undefined;
  let failures = 0;
  let timer: Timer | undefined;
  let writing: Promise<void> | undefined;

  function soon(ms: number): void {
    if (timer !== undefined || writing !== undefined) return;
    timer = clock.after(ms, () => void write());
  }

  function write(): Promise<void> {
    timer?.cancel();
    timer = undefined;
    return (writing ??= writeBatches().finally(() => {
      writing = undefined;
      if (inHand !== undefined || hasNews()) soon(retryMs());
    }));
  }

  async function writeBatches(): Promise<void> {
    for (;;) {
      inHand ??= take();
      if (inHand === undefined) return;
      const batch = inHand;
      try {
        // The unit may change the session's own row, so it must not stamp the beat.
        await store.write((tx) => writeRunBatch(tx, batch), { beat: false });
        failures = 0;
        told = { seq: batch.sessionSeq, dropped: batch.dropped };
        inHand = undefined;
        if (batch.runs.length > 0) onWritten?.();
      } catch (error) {
        failures += 1;
        // A batch without runs and lines is made anew, so that its numbers are the latest.
        if (batch.runs.length + batch.logs.length === 0) inHand = undefined;
        else if (lasting.has(asDaybookError(error).code) && failures >= triesMax) giveUp(batch);
        return;
      }
    }
  }

  function hasNews(): boolean {
    return runs.length > 0 || logs.length > 0 || dropped !== told.dropped;
  }

  function take(): RunBatch | undefined {
    if (!hasNews()) return undefined;
    const { seq } = session();
    if (told.seq !== seq) {
      // The new session answers for what was dropped and not told yet.
      if (told.seq !== 0) dropped = minus(dropped, told.dropped);
      told = { seq, dropped: noDrops };
    }
    const batch = { sessionSeq: seq, runs: firstOf(runs), logs: firstOf(logs), dropped };
    runs = runs.slice(batch.runs.length);
    logs = logs.slice(batch.logs.length);
    return batch;
  }

  function giveUp(batch: RunBatch): void {
    inHand = undefined;
    failures = 0;
    drop({ runs: batch.runs.length, logs: batch.logs.length, events: 0 });
  }

  function drop(more: Dropped): void {
    dropped = { runs: dropped.runs + more.runs, logs: dropped.logs + more.logs, events: dropped.events + more.events };
    if (runsDropped.heard) runsDropped.state(more);
  }

  function retryMs(): number {
    return Math.min(retryMsMax, limits.runFlushMs * 2 ** Math.min(failures, 10));
  }

  const open = new Set<OpenRun>();
  let ending = false;
  unwritten(store).add((error) => {
    ending = true;
    for (const run of [...open]) run.crashed(error);
    const batches: RunBatch[] = inHand === undefined ? [] : [inHand];
    for (let next = take(); next !== undefined; next = take()) {
      batches.push(next);
      told = { seq: next.sessionSeq, dropped: next.dropped };
    }
    return batches;
  });

  return {
    open,
    get ending() {
      return ending;
    },
    get dropped() {
      return dropped;
    },
    ended(run) {
      if (runs.length >= limits.runQueueMax) return drop({ ...noDrops, runs: 1 });
      // While writes fail, the retry sets the pace.
      if (runs.push(run) >= limits.runBatchMax && failures === 0) void write();
      else soon(limits.runFlushMs);
    },
    log(line) {
      if (logs.length >= limits.runLogQueueMax) return drop({ ...noDrops, logs: 1 });
      logs.push(line);
      soon(limits.runFlushMs);
    },
    tooBusy(events) {
      drop({ ...noDrops, events });
      soon(limits.runFlushMs);
    },
    async drain() {
      const bound = new AbortController();
      // The book is waited for in real time.
      const late = store.waitClock.after(limits.runDrainMs, () => bound.abort(), { keepAlive: true });
      const aborted = new Promise<void>((resolve) => bound.signal.addEventListener("abort", () => resolve()));
      while (!bound.signal.aborted && (inHand !== undefined || hasNews())) {
        const before = failures;
        await Promise.race([write(), aborted]);
        // After a failure it tries again at the usual pace, while there is time.
        if (failures > before) await store.waitClock.sleep(retryMs(), bound.signal);
      }
      late.cancel();
      timer?.cancel();
      const left = { runs: runs.length + (inHand?.runs.length ?? 0), logs: logs.length + (inHand?.logs.length ?? 0) };
      if (left.runs > 0 || left.logs > 0) drop({ ...left, events: 0 });
      [runs, logs, inHand] = [[], [], undefined];
    },
  };
}

function firstOf<T>(list: readonly T[]): readonly T[] {
  return list.length <= limits.runBatchMax ? list : list.slice(0, limits.runBatchMax);
}

function minus(a: Dropped, b: Dropped): Dropped {
  return { runs: a.runs - b.runs, logs: a.logs - b.logs, events: a.events - b.events };
}
