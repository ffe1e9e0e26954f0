// Records the runs of live listeners without holding up their work: a handler that ends leaves a row in memory, and batches of
// rows go into the book. The session counts what could not be recorded.
import type { Timer } from "../core/clock.ts";
import { asDaybookError, type ErrorCode } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { greatest, insertInto, type Nullable, type RowOf } from "../storage/word.ts";
import { writeLogs, type RunLogRow } from "./log.ts";
import type { RunStatus } from "./run.ts";
import type { SessionKey } from "./session.ts";

export type RunWriter = {
  ended(run: EndedRun): void;
  log(line: RunLogRow): void;
  /** Counts events that a listener was too busy to hear. */
  tooBusy(events: number): void;
  /** Everything that was dropped so far, including what the book does not know yet. */
  readonly dropped: Dropped;
  /** Resolves when everything is written, or after `limits.runDrainMs`; the rest is dropped then. */
  drain(): Promise<void>;
};

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

  return {
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

export type Dropped = { readonly runs: number; readonly logs: number; readonly events: number };
const noDrops: Dropped = { runs: 0, logs: 0, events: 0 };

/** What one transaction writes. */
type RunBatch = {
  readonly sessionSeq: number;
  readonly runs: readonly EndedRun[];
  readonly logs: readonly RunLogRow[];
  /** In total since the session began. */
  readonly dropped: Dropped;
};

const columns = {
  tenant_id: "text",
  id: "text",
  kind: "text",
  name: "text",
  session_seq: "integer",
  attempt: "integer",
  started_at: "integer",
  ended_at: "integer",
  duration_ms: "real",
  status: "text",
  error_type: "text",
  error_message: "text",
  error_trace: "text",
  cause_run_id: "text",
  root_run_id: "text",
  event_id: "text",
  topic: "text",
  app: "text",
  instance: "integer",
  registration: "text",
} as const;

type Row = RowOf<typeof columns>;
type Unset = "error_type" | "error_message" | "error_trace" | "cause_run_id" | "root_run_id" | "event_id";
type Owner = "app" | "instance" | "registration";

/** A row of `run` as a live listener leaves it. */
export type EndedRun = Readonly<
  Omit<Row, Unset | Owner> & Nullable<Pick<Row, Unset>> & Partial<Nullable<Pick<Row, Owner>>> & { status: RunStatus }
>;

/** Most runs have no owner, so the handler leaves these fields out. */
const noOwner = { app: null, instance: null, registration: null };

async function writeRunBatch(tx: Tx, { sessionSeq, runs, logs, dropped }: RunBatch): Promise<void> {
  if (runs.length > 0) {
    const rows = runs.map((run) => ({ ...noOwner, ...run }));
    const written = await tx.run(sql`${insertInto("daybook_run", columns, rows)} on conflict (id) do nothing`);
    // A batch is written whole: if its runs are there, the first try was committed and only its answer was lost.
    if (written === 0) return;
  }
  if (logs.length > 0) await writeLogs(tx, logs);
  // These are totals, so writing them twice changes nothing.
  const { runs: lostRuns, logs: lostLogs, events: lostEvents } = dropped;
  if (lostRuns + lostLogs + lostEvents === 0) return;
  await tx.run(sql`update daybook_session set dropped_runs = ${greatest}(dropped_runs, ${lostRuns}),
      dropped_logs = ${greatest}(dropped_logs, ${lostLogs}), dropped_events = ${greatest}(dropped_events, ${lostEvents})
    where seq = ${sessionSeq}`);
}
