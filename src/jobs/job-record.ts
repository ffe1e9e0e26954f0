// A job as its user sees it: its row, its run if it has ended, and its neighbours in the chain.
import { sql, type Sql } from "../storage/sql.ts";
import type { RunStatus } from "../telemetry/run.ts";
import { commandColumns, toCommand, type CommandColumns, type CommandRecord } from "./command/command-record.ts";
import { statusNow, type JobOrigin, type JobStatus, type WaitsFor } from "./job.ts";
import { chargedLosses } from "./outcome.ts";

export type JobRecord = {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly status: JobStatus;
  readonly waitsFor: WaitsFor | null;
  readonly priority: number;
  /** Its place in line; null once it has ended. */
  readonly position: number | null;
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
  /** It is called running, but its process is gone from this host: whoever recovers it makes it again. */
  readonly gone: boolean;
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

// A finished job's start is in its run; an open one's is in the line.
const columns = sql`select job.seq, job.id, job.name, lane.queue, ${statusNow} as status, line.waits_for as "waitsFor",
    coalesce(line.priority, job.priority) as priority, line.position, job.created_at as "createdAt",
    coalesce(line.available_at, job.due_at, job.created_at) as "availableAt",
    coalesce(line.started_at, run.started_at) as "startedAt", coalesce(run.ended_at, job.cancelled_at) as "finishedAt",
    job.params, job.origin, job.attempt, job.attempts, job.losses, job.key, job.tags, job_template.name as template,
    parent.id as "retryOf", child.id as "retriedBy", coalesce(line.run_id, run.id) as "runId", session.id as "sessionId",
    job.alone, line.progress, line.progress_note, job.cause_run_id, job.root_run_id, run.status as run_status,
    run.ended_at, run.duration_ms, run.error_type, run.error_message, run.error_trace, run.result, ${commandColumns}`;

const around = sql`left join daybook_run run on run.job_seq = job.seq
  left join daybook_job_template job_template
    on job_template.tenant_id = job.tenant_id and job_template.id = job.template_id
  left join daybook_session session on session.seq = line.session_seq
  left join daybook_job parent on parent.seq = job.retry_of
  left join daybook_job child on child.retry_of = job.seq
  left join daybook_run_command command
    on command.tenant_id = job.tenant_id and command.run_id = coalesce(line.run_id, run.id)`;

/** Jobs in any state, to be narrowed with `and …`; `by` is how SQLite finds them. The lane is joined so that SQLite cannot begin
 *  with it, and sort all jobs of all lanes. */
export function selectRecords(by: Sql): Sql {
  return sql`${columns} from daybook_job job ${by} cross join daybook_lane lane
    left join daybook_line line on line.seq = job.seq ${around} where lane.seq = job.lane_seq`;
}

/** Open jobs alone, found in the line: what has ended is not read, however much it is. */
export function selectOpenRecords(by: Sql): Sql {
  return sql`${columns} from daybook_line line ${by} cross join daybook_job job cross join daybook_lane lane ${around}
    where job.seq = line.seq and lane.seq = job.lane_seq`;
}

export type RecordRow = Omit<JobRecord, "params" | "tags" | "gone" | "progress" | "cause" | "run"> &
  CommandColumns & {
    readonly seq: number;
    readonly params: string;
    readonly tags: string | null;
    readonly alone: number;
    readonly progress: number | null;
    readonly progress_note: string | null;
    readonly cause_run_id: string | null;
    readonly root_run_id: string | null;
    readonly run_status: RunStatus | null;
    readonly ended_at: number | null;
    readonly duration_ms: number | null;
    readonly error_type: string | null;
    readonly error_message: string | null;
    readonly error_trace: string | null;
    readonly result: string | null;
  };

/** `gone` are the ids of sessions whose process is. */
export function toRecord(row: RecordRow, gone: ReadonlySet<string>): JobRecord {
  const { cause_run_id: runId, root_run_id: rootRunId } = row;
  return {
    id: row.id,
    name: row.name,
    queue: row.queue,
    status: row.status,
    waitsFor: row.waitsFor,
    priority: row.priority,
    position: row.position,
    createdAt: row.createdAt,
    availableAt: row.availableAt,
    startedAt: row.startedAt,
    finishedAt: row.finishedAt,
    params: JSON.parse(row.params) as unknown,
    origin: row.origin,
    attempt: row.attempt,
    attempts: row.attempts,
    losses: row.losses + (row.run_status === null ? 0 : chargedLosses(row, { status: row.run_status })),
    key: row.key,
    tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
    template: row.template,
    retryOf: row.retryOf,
    retriedBy: row.retriedBy,
    runId: row.runId,
    sessionId: row.sessionId,
    gone: row.sessionId !== null && gone.has(row.sessionId),
    progress: row.progress === null ? null : { done: row.progress, note: row.progress_note },
    cause: runId === null || rootRunId === null ? null : { runId, rootRunId },
    run: toRun(row),
  };
}

function toRun(row: RecordRow): JobRun | null {
  if (row.run_status === null || row.runId === null) return null;
  return {
    id: row.runId,
    status: row.run_status,
    startedAt: row.startedAt ?? 0,
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
