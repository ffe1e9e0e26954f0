// A run is one execution that has ended: of a job, and later of a delivery, a live listener, a fire or a call. Its row
// is written once and never changes.
import { type Sql, sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf, byNumber } from "../storage/word.ts";
import type { LogLevel } from "./log.ts";
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { storableText } from "../core/storable-text.ts";

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

// Runs that must not be removed: those that somebody pinned, and those that are not in the rollups yet.

/** Of `run`: somebody pinned it. */
export const runIsPinned = sql`exists (select 1 from daybook_run_pin run_pin
  where run_pin.tenant_id = run.tenant_id and run_pin.run_id = run.id)`;

/** Of `run`, in the transaction that removes runs: the mark only moves on, so what is folded stays so. */
export const runIsKept = sql`(run.seq > (select folded_seq from daybook_run_fold) or ${runIsPinned})`;

export async function keptRuns(tx: Tx, tenant: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await tx.all<{ id: string }>(
    sql`select id from daybook_run run where tenant_id = ${tenant} and id ${anyOf("text", ids)} and ${runIsKept}`,
  );
  return new Set(rows.map((row) => row.id));
}

/** Pinning again changes the note. */
export async function pinRun(tx: Tx, id: string, note: string | null): Promise<void> {
  const pinned = await tx.run(sql`insert into daybook_run_pin (tenant_id, run_id, pinned_at, note)
    select tenant_id, id, ${tx.now}, ${note === null ? null : storableText(note, limits.noteBytesMax)}
    from daybook_run where tenant_id = ${tx.tenant} and id = ${id}
    on conflict (tenant_id, run_id) do update set note = excluded.note`);
  if (pinned === 0) throw new DaybookError("not_found", `there is no ended run ${id}`, { details: { id } });
}

/** False when it was not pinned. */
export async function unpinRun(tx: Tx, id: string): Promise<boolean> {
  return (await tx.run(sql`delete from daybook_run_pin where tenant_id = ${tx.tenant} and run_id = ${id}`)) > 0;
}

// Whether anything was ever recorded for what an app registered.

/** Also when its runs have left by retention, as long as their rollups are there. */
export async function hasHistory(store: Store, tenant: string, owner: RunOwner): Promise<boolean> {
  const { app, instance, registration } = owner;
  // Spelt as the index spells it.
  const runs = await store.read(sql`select 1 as one from daybook_run where tenant_id = ${tenant}
    and coalesce(registration, name) = ${registration} and (job_seq is null or registration is not null)
    and app = ${app} and instance = ${instance} limit 1`);
  if (runs.length > 0) return true;
  const series = await store.read(sql`select 1 as one from daybook_run_series where tenant_id = ${tenant}
    and kind in ('job', 'listener', 'schedule', 'direct') and name = ${registration} and app = ${app} and instance = ${instance}
    limit 1`);
  return series.length > 0;
}
