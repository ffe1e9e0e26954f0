// A job as its user sees it: its row, its run if it has ended, and its neighbours in the chain.
import { sql } from "../storage/sql.ts";
import type { RunStatus } from "../telemetry/run.ts";
import { commandColumns, toCommand, type CommandColumns, type CommandRecord } from "./command/command-record.ts";
import type { JobOrigin, JobStatus, WaitsFor } from "./job.ts";

export type JobRecord = {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly status: JobStatus;
  readonly waitsFor: WaitsFor | null;
  readonly priority: number;
  readonly position: number;
  readonly createdAt: number;
  readonly availableAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly params: unknown;
  readonly origin: JobOrigin;
  readonly attempt: number;
  readonly attempts: number;
  readonly losses: number;
  readonly key: string | null;
  readonly tags: readonly string[];
  /** The name of the template it was made from. */
  readonly template: string | null;
  readonly retryOf: string | null;
  readonly retriedBy: string | null;
  readonly runId: string | null;
  readonly sessionId: string | null;
  readonly progress: { readonly done: number; readonly note: string | null } | null;
  readonly cause: { readonly runId: string; readonly rootRunId: string } | null;
  readonly run: JobRun | null;
};

export type JobRun = {
  readonly id: string;
  readonly status: RunStatus;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly durationMs: number;
  readonly attempt: number;
  readonly error: { readonly type: string; readonly message: string; readonly trace: string | null } | null;
  readonly result: unknown;
  /** The program that it started; null for every other kind of job. */
  readonly command: CommandRecord | null;
};

// A finished job's start is in its run; an open one's is its own.
export const selectRecords = sql`select job.seq, job.id, job.name, lane.queue, job.status, job.waits_for, job.priority,
    job.position, job.created_at, job.available_at, coalesce(job.started_at, run.started_at) as started_at,
    job.finished_at, job.params, job.origin, job.attempt, job.attempts, job.losses, job.key, job.tags, job.run_id,
    job.progress, job.progress_note, job.cause_run_id, job.root_run_id,
    job_template.name as template, session.id as session_id, parent.id as parent_id, child.id as child_id,
    run.status as run_status, run.ended_at, run.duration_ms, run.error_type, run.error_message, run.error_trace,
    run.result, ${commandColumns}
  from job join lane on lane.seq = job.lane_seq
  left join job_template on job_template.tenant_id = job.tenant_id and job_template.id = job.template_id
  left join session on session.seq = job.session_seq
  left join job parent on parent.seq = job.retry_of
  left join job child on child.retry_of = job.seq
  left join run on run.tenant_id = job.tenant_id and run.id = job.run_id
  left join run_command command on command.tenant_id = job.tenant_id and command.run_id = job.run_id`;

export type RecordRow = CommandColumns & {
  seq: number;
  id: string;
  name: string;
  queue: string;
  status: JobStatus;
  waits_for: WaitsFor | null;
  priority: number;
  position: number;
  created_at: number;
  available_at: number;
  started_at: number | null;
  finished_at: number | null;
  params: string;
  origin: JobOrigin;
  attempt: number;
  attempts: number;
  losses: number;
  key: string | null;
  tags: string | null;
  template: string | null;
  run_id: string | null;
  progress: number | null;
  progress_note: string | null;
  cause_run_id: string | null;
  root_run_id: string | null;
  session_id: string | null;
  parent_id: string | null;
  child_id: string | null;
  run_status: RunStatus | null;
  ended_at: number | null;
  duration_ms: number | null;
  error_type: string | null;
  error_message: string | null;
  error_trace: string | null;
  result: string | null;
};

export function toRecord(row: RecordRow): JobRecord {
  const { cause_run_id: runId, root_run_id: rootRunId } = row;
  return {
    id: row.id,
    name: row.name,
    queue: row.queue,
    status: row.status,
    waitsFor: row.waits_for,
    priority: row.priority,
    position: row.position,
    createdAt: row.created_at,
    availableAt: row.available_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    params: JSON.parse(row.params) as unknown,
    origin: row.origin,
    attempt: row.attempt,
    attempts: row.attempts,
    losses: row.losses,
    key: row.key,
    tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
    template: row.template,
    retryOf: row.parent_id,
    retriedBy: row.child_id,
    runId: row.run_id,
    sessionId: row.session_id,
    progress: row.progress === null ? null : { done: row.progress, note: row.progress_note },
    cause: runId === null || rootRunId === null ? null : { runId, rootRunId },
    run: toRun(row),
  };
}

function toRun(row: RecordRow): JobRun | null {
  if (row.run_status === null || row.run_id === null) return null;
  return {
    id: row.run_id,
    status: row.run_status,
    startedAt: row.started_at ?? 0,
    endedAt: row.ended_at ?? 0,
    durationMs: row.duration_ms ?? 0,
    attempt: row.attempt,
    error:
      row.error_type === null
        ? null
        : { type: row.error_type, message: row.error_message ?? "", trace: row.error_trace },
    result: row.result === null ? null : (JSON.parse(row.result) as unknown),
    command: toCommand(row),
  };
}
