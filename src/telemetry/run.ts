// A run is one execution that has ended: of a job, and later of a delivery, a live listener, a fire or a call. Its row
// is written once and never changes.
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf, byNumber } from "../storage/word.ts";
import type { LogLevel } from "./log.ts";

export type RunStatus = "success" | "error" | "cancelled" | "timed_out" | "skipped" | "lost";
export const runStatuses: readonly RunStatus[] = ["success", "error", "cancelled", "timed_out", "skipped", "lost"];

/** What a run belongs to: an app's instance, and the name of the listener or schedule that it registered. */
export type RunOwner = { readonly app: string; readonly instance: number; readonly registration: string };

export type RunRecord = {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly jobId: string | null;
  /** What a live listener heard; its id is null when it was emitted. Null for other runs. */
  readonly event: { readonly id: string | null; readonly topic: string } | null;
  /** The app that it belongs to; null for a run of no app. */
  readonly app: { readonly key: string; readonly instance: number } | null;
  /** The schedule that fired it, or the name under which an app registered it; null for other runs. */
  readonly registration: string | null;
  readonly sessionId: string | null;
  readonly attempt: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly durationMs: number;
  readonly status: RunStatus;
  readonly error: { readonly type: string; readonly message: string; readonly trace: string | null } | null;
  readonly result: unknown;
  readonly cause: { readonly runId: string; readonly rootRunId: string | null } | null;
};

export type RunLog = {
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: unknown;
};

export type RunRow = {
  seq: number;
  id: string;
  kind: string;
  name: string;
  job_id: string | null;
  event_id: string | null;
  topic: string | null;
  app: string | null;
  instance: number | null;
  registration: string | null;
  session_id: string | null;
  attempt: number;
  started_at: number;
  ended_at: number;
  duration_ms: number;
  status: RunStatus;
  error_type: string | null;
  error_message: string | null;
  error_trace: string | null;
  result: string | null;
  cause_run_id: string | null;
  root_run_id: string | null;
};

const shown = sql`select run.seq, run.id, run.kind, run.name, job.id as job_id, run.event_id, run.topic, run.app, run.instance, run.registration,
  session.id as session_id, run.attempt,
  run.started_at, run.ended_at, run.duration_ms, run.status, run.error_type, run.error_message, run.error_trace,
  run.result, run.cause_run_id, run.root_run_id`;

export const selectRuns: Sql = sql`${shown} from daybook_run run
  left join daybook_session session on session.seq = run.session_seq left join daybook_job job on job.seq = run.job_seq`;
/** For lists by number. */
export const selectByNumber: Sql = sql`${shown} from daybook_run run ${byNumber}
  left join daybook_session session on session.seq = run.session_seq left join daybook_job job on job.seq = run.job_seq`;

export function toRecord(row: RunRow): RunRecord {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    jobId: row.job_id,
    event: row.topic === null ? null : { id: row.event_id, topic: row.topic },
    app: row.app === null ? null : { key: row.app, instance: row.instance ?? 0 },
    registration: row.registration,
    sessionId: row.session_id,
    attempt: row.attempt,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    durationMs: row.duration_ms,
    status: row.status,
    error:
      row.error_type === null
        ? null
        : { type: row.error_type, message: row.error_message ?? "", trace: row.error_trace },
    result: row.result === null ? null : (JSON.parse(row.result) as unknown),
    cause: row.cause_run_id === null ? null : { runId: row.cause_run_id, rootRunId: row.root_run_id },
  };
}

/** In the order of the numbers given; those that are gone are left out. */
export async function readRunsBySeq(store: Store, seqs: readonly number[]): Promise<RunRecord[]> {
  const rows = await store.readHeavy<RunRow>(sql`${selectRuns} where run.seq ${anyOf("integer", seqs)}`);
  const found = new Map(rows.map((row) => [row.seq, toRecord(row)]));
  return seqs.flatMap((seq) => found.get(seq) ?? []);
}
