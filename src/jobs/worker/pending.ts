// What a worker has still to write: how its runs ended, and what they said about themselves. It stays here until a turn has
// written it.
import type { ErrorCode } from "../../core/error.ts";
import type { RunLogRow } from "../../telemetry/log.ts";
import type { RunState } from "../run/context.ts";
import type { Engine } from "../engine.ts";
import { runNotesDropped } from "../kind.ts";
import type { Ending } from "../settle/outcome.ts";
import { settle } from "../settle/settle.ts";

export type Progress = {
  readonly seq: number;
  readonly run_id: string;
  readonly progress: number;
  readonly note: string | null;
};

export type Pending = {
  readonly endings: readonly Ending[];
  readonly logs: readonly RunLogRow[];
  readonly progress: readonly Progress[];
};

export type PendingWrites = ReturnType<typeof createPendingWrites>;

export function createPendingWrites() {
  const changed = new Set<RunState>();
  let endings: Ending[] = [];
  let logs: RunLogRow[] = [];
  let progress: Progress[] = [];

  function collect(): void {
    for (const state of changed) {
      const { seq, run_id, tenant_id } = state.job;
      for (const { level, message, fields, at } of state.logs.splice(0)) {
        logs.push({ tenant_id, run_id, logged_at: at, level, message, fields });
      }
      if (state.progress === undefined) continue;
      progress.push({ seq, run_id, progress: state.progress.done, note: state.progress.note });
      state.progress = undefined;
    }
    changed.clear();
  }

  return {
    get any() {
      return endings.length > 0 || changed.size > 0 || logs.length > 0 || progress.length > 0;
    },
    ended: (ending: Ending) => void endings.push(ending),
    /** The run has logged a line or made progress. */
    changed: (state: RunState) => void changed.add(state),
    take(): Pending {
      if (changed.size > 0) collect();
      // One statement updates a row once, so of several reports of one run the last one counts.
      const latest = new Map(progress.map((each) => [each.run_id, each]));
      const pending = { endings, logs, progress: [...latest.values()] };
      [endings, logs, progress] = [[], [], []];
      return pending;
    },
    /** Takes back what could not be written. */
    giveBack(pending: Pending) {
      endings = [...pending.endings, ...endings];
      logs = [...pending.logs, ...logs];
      progress = [...pending.progress, ...progress];
    },
  };
}

/** Failures that pass by themselves; nothing is given up for them. */
const passes: readonly ErrorCode[] = [
  "busy",
  "unavailable",
  "unknown_outcome",
  "full",
  "conflict",
  "timeout",
  "closed",
];
export const passing: ReadonlySet<ErrorCode> = new Set(passes);

const dropNotesAfter = 2;
const oneByOneAfter = 3;

/** What is left to write after the n-th failure in a row for a reason that does not pass. A turn writes many things at once,
 *  so one that cannot be written holds up the others: logs and progress are given up first, then every ending is written by
 *  itself. */
export async function writeApart(engine: Engine, pending: Pending, failures: number): Promise<Pending> {
  const { endings } = pending;
  if (failures < dropNotesAfter) return pending;
  const dropped = pending.logs.length + pending.progress.length;
  if (dropped > 0) runNotesDropped.state({ count: dropped });
  if (failures < oneByOneAfter || endings.length < 2) return { endings, logs: [], progress: [] };
  const left: Ending[] = [];
  for (const ending of endings) {
    try {
      await engine.store.write((tx) => settle(tx, engine, [ending]), { beat: false });
    } catch {
      left.push(ending);
    }
  }
  return { endings: left, logs: [], progress: [] };
}
