// What a process has to say about runs of live listeners: rows that go into the book together, and counts of what could not be kept.
// The thread that records the end of a process writes them too, so this asks for nothing but a connection.
import type { ErrorDescription } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { greatest, insertInto, type Nullable, type RowOf } from "../storage/word.ts";
import { writeLogs, type RunLogRow } from "./log.ts";
import type { RunStatus } from "./run.ts";

export type Dropped = { readonly runs: number; readonly logs: number; readonly events: number };
export const noDrops: Dropped = { runs: 0, logs: 0, events: 0 };

/** What one transaction writes. */
export type RunBatch = {
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

export async function writeRunBatch(tx: Pick<Tx, "run">, { sessionSeq, runs, logs, dropped }: RunBatch): Promise<void> {
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

/** What is still to be written, asked when an uncaught exception is about to end the process. The parts of this process that keep
 *  such runs are in here. */
export function unwritten(store: Pick<Store, "keep">): Set<(error: ErrorDescription) => readonly RunBatch[]> {
  return store.keep("unwritten runs", () => new Set());
}
