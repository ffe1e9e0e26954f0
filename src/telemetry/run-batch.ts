// One transaction's worth of ended runs and log lines of live listeners, and of what their session had to drop.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { eachRow, greatest } from "../storage/word.ts";
import { writeLogs, type RunLogRow } from "./log.ts";
import type { RunStatus } from "./run.ts";

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
