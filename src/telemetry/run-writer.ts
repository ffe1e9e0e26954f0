// Writes down the runs of live listeners, beside the work and never in its way: a handler that ends leaves a row in
// memory and is done. The rows go into the book a batch at a time. Whatever cannot be kept is counted on the session.
import type { Timer } from "../core/clock.ts";
import { type ErrorCode, asDaybookError } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import type { Store, Tx } from "../storage/store.ts";
import { type RunLogRow, writeLogs } from "./log.ts";
import type { SessionKey } from "./session.ts";
import { sql } from "../storage/sql.ts";
import { eachRow, greatest } from "../storage/word.ts";
import type { RunStatus } from "./run.ts";

export type RunWriter = {
  ended(run: EndedRun): void;
  log(line: RunLogRow): void;
  /** So many events found their listener too busy to hear them. */
  tooBusy(events: number): void;
  /** Everything that was dropped so far, also what the book does not know yet. */
  readonly dropped: Dropped;
  /** Resolves when all is written, or after `limits.runDrainMs`; what is left then is dropped. */
  drain(): Promise<void>;
};

/** Runs or lines were given up. */
export const runsDropped = defineFact<Dropped>("runs.dropped");

// These do not pass by waiting: a batch that meets one of them again and again is given up.
const lasting: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["invalid", "internal", "incompatible", "closed"]);
const triesMax = 3;
const retryMsMax = 5000;

/** `onWritten` is told when runs are on disk. */
export function openRunWriter(store: Store, session: () => SessionKey, onWritten?: () => void): RunWriter {
  const { clock } = store;
  let runs: EndedRun[] = [];
  let logs: RunLogRow[] = [];
  // What the book knows of what was dropped, and by which session: one that was replaced keeps its own numbers.
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
        // It may change the session's own row, so the beat is left to others.
        await store.write((tx) => writeRunBatch(tx, batch), { beat: false });
        failures = 0;
        told = { seq: batch.sessionSeq, dropped: batch.dropped };
        inHand = undefined;
        if (batch.runs.length > 0) onWritten?.();
      } catch (error) {
        failures += 1;
        // Numbers alone are taken anew, so that they are the latest, for as long as it takes.
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
      // A new session: it answers for what was dropped and not yet told.
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
      if (runs.length >= limits.runQueueMax) return drop({ runs: 1, logs: 0, events: 0 });
      // While the book refuses to be written, its own pace is kept.
      if (runs.push(run) >= limits.runBatchMax && failures === 0) void write();
      else soon(limits.runFlushMs);
    },
    log(line) {
      if (logs.length >= limits.runLogQueueMax) return drop({ runs: 0, logs: 1, events: 0 });
      logs.push(line);
      soon(limits.runFlushMs);
    },
    tooBusy(events) {
      drop({ runs: 0, logs: 0, events });
      soon(limits.runFlushMs);
    },
    async drain() {
      const bound = new AbortController();
      // The book is waited for, and that in real time.
      const late = store.waitClock.after(limits.runDrainMs, () => bound.abort(), { keepAlive: true });
      const aborted = new Promise<void>((resolve) => bound.signal.addEventListener("abort", () => resolve()));
      while (!bound.signal.aborted && (inHand !== undefined || hasNews())) {
        const before = failures;
        await Promise.race([write(), aborted]);
        // Who just failed tries again at the usual pace, as long as there is time.
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

// One transaction's worth of ended runs and log lines of live listeners, and of what their session had to drop.

/** A row of `run` as a live listener leaves it. */
export type EndedRun = {
  readonly tenant_id: string;
  readonly id: string;
  readonly kind: "listener";
  readonly name: string;
  readonly session_seq: number;
  readonly attempt: 1;
  readonly started_at: number;
  readonly ended_at: number;
  readonly duration_ms: number;
  readonly status: RunStatus;
  readonly error_type: string | null;
  readonly error_message: string | null;
  readonly error_trace: string | null;
  readonly cause_run_id: string | null;
  readonly root_run_id: string | null;
  readonly event_id: string | null;
  readonly topic: string;
  readonly app?: string | null;
  readonly instance?: number | null;
  readonly registration?: string | null;
};

export type Dropped = { readonly runs: number; readonly logs: number; readonly events: number };
export const noDrops: Dropped = { runs: 0, logs: 0, events: 0 };

export type RunBatch = {
  readonly sessionSeq: number;
  readonly runs: readonly EndedRun[];
  readonly logs: readonly RunLogRow[];
  /** In total since the session began. */
  readonly dropped: Dropped;
};

const columns = {
  ...({ tenant_id: "text", id: "text", kind: "text", name: "text", session_seq: "integer" } as const),
  ...({ attempt: "integer", started_at: "integer", ended_at: "integer", duration_ms: "real" } as const),
  ...({ status: "text", error_type: "text", error_message: "text", error_trace: "text" } as const),
  ...({ cause_run_id: "text", root_run_id: "text", event_id: "text", topic: "text" } as const),
  ...({ app: "text", instance: "integer", registration: "text" } as const),
};

// Most runs have no owner, and the handler's thread does not say so for each.
function owned(run: EndedRun) {
  const { app = null, instance = null, registration = null } = run;
  return { ...run, app, instance, registration };
}

export async function writeRunBatch(tx: Tx, { sessionSeq, runs, logs, dropped }: RunBatch): Promise<void> {
  if (runs.length > 0) {
    const written =
      await tx.run(sql`insert into daybook_run (tenant_id, id, kind, name, session_seq, attempt, started_at,
        ended_at, duration_ms, status, error_type, error_message, error_trace, cause_run_id, root_run_id, event_id, topic,
        app, instance, registration)
      ${eachRow(columns, runs.map(owned))} on conflict (id) do nothing`);
    // A batch is written whole: if its runs are there, so is the rest, and only the answer to the first try was lost.
    if (written === 0) return;
  }
  await writeLogs(tx, logs);
  // Totals, not differences: writing them twice changes nothing.
  const { runs: lostRuns, logs: lostLogs, events: lostEvents } = dropped;
  if (lostRuns + lostLogs + lostEvents === 0) return;
  await tx.run(sql`update daybook_session set dropped_runs = ${greatest}(dropped_runs, ${lostRuns}),
      dropped_logs = ${greatest}(dropped_logs, ${lostLogs}), dropped_events = ${greatest}(dropped_events, ${lostEvents})
    where seq = ${sessionSeq}`);
}
