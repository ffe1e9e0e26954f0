// A run is one execution that has ended: of a job or of a live listener. Its row is written once and never changes.
import { notFound, type DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { storableText } from "../core/quote.ts";
import { shapeEach } from "../storage/shape.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Row, Store, Tx } from "../storage/store.ts";
import { anyOf, byNumber } from "../storage/word.ts";

export const runStatuses = ["success", "error", "cancelled", "timed_out", "skipped", "lost"] as const;
export type RunStatus = (typeof runStatuses)[number];

/** The app instance that a run belongs to, and the name under which it registered the listener or schedule. */
export type RunOwner = { readonly app: string; readonly instance: number; readonly registration: string };

export type RunRecord = {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly jobId: string | null;
  /** The event that a live listener heard; its id is null when it was emitted. Null for other runs. */
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

const shown = sql`select run.seq as ".seq", run.id, run.kind, run.name, job.id as "jobId", run.topic as "event.topic",
  run.event_id as "event.id", run.app as "app.key", run.instance as "app.instance", run.registration,
  session.id as "sessionId", run.attempt, run.started_at as "startedAt", run.ended_at as "endedAt",
  run.duration_ms as "durationMs", run.status, run.error_type as "error.type",
  coalesce(run.error_message, '') as "error.message", run.error_trace as "error.trace", run.result as "result json",
  run.cause_run_id as "cause.runId", run.root_run_id as "cause.rootRunId"`;

const joined = sql`left join daybook_session session on session.seq = run.session_seq
  left join daybook_job job on job.seq = run.job_seq`;

export const selectRuns: Sql = sql`${shown} from daybook_run run ${joined}`;
/** For lists that walk over numbers. */
export const selectByNumber: Sql = sql`${shown} from daybook_run run ${byNumber} ${joined}`;

/** In the order of the numbers; runs that are gone are left out. */
export async function readRunsBySeq(store: Store, seqs: readonly number[]): Promise<RunRecord[]> {
  const rows = await store.readHeavy<Row>(sql`${selectRuns} where run.seq ${anyOf("integer", seqs)}`);
  const runs = await shapeEach<RunRecord>(rows);
  const found = new Map(runs.map((run, index) => [rows[index]?.[".seq"], run]));
  return seqs.flatMap((seq) => found.get(seq) ?? []);
}

/** Of `run`: it is pinned. */
export const runIsPinned = sql`exists (select 1 from daybook_run_pin run_pin
  where run_pin.tenant_id = run.tenant_id and run_pin.run_id = run.id)`;

/** Of `run`: it must not be removed, because it is pinned or no rollup counts it yet. */
export const runIsKept = sql`(run.seq > (select folded_seq from daybook_run_fold) or ${runIsPinned})`;

export async function keptRuns(tx: Tx, tenant: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await tx.all<{ id: string }>(
    sql`select id from daybook_run run where tenant_id = ${tenant} and id ${anyOf("text", ids)} and ${runIsKept}`,
  );
  return new Set(rows.map((row) => row.id));
}

export function noEndedRun(id: string): DaybookError {
  return notFound(`there is no ended run ${id}`, { id });
}

/** Pinning again changes the note. */
export async function pinRun(tx: Tx, id: string, note: string | null): Promise<void> {
  const pinned = await tx.run(sql`insert into daybook_run_pin (tenant_id, run_id, pinned_at, note)
    select tenant_id, id, ${tx.now}, ${note === null ? null : storableText(note, limits.noteBytesMax)}
    from daybook_run where tenant_id = ${tx.tenant} and id = ${id}
    on conflict (tenant_id, run_id) do update set note = excluded.note`);
  if (pinned === 0) throw noEndedRun(id);
}

/** False when it was not pinned. */
export async function unpinRun(tx: Tx, id: string): Promise<boolean> {
  return (await tx.run(sql`delete from daybook_run_pin where tenant_id = ${tx.tenant} and run_id = ${id}`)) > 0;
}

/** Whether anything was ever recorded for this listener or schedule of an app. Rollups count after their runs have left. */
export async function hasHistory(store: Store, tenant: string, owner: RunOwner): Promise<boolean> {
  const { app, instance, registration } = owner;
  // Spelt like the index.
  const runs = await store.read(sql`select 1 as one from daybook_run where tenant_id = ${tenant}
    and coalesce(registration, name) = ${registration} and (job_seq is null or registration is not null)
    and app = ${app} and instance = ${instance} limit 1`);
  if (runs.length > 0) return true;
  const series = await store.read(sql`select 1 as one from daybook_run_series where tenant_id = ${tenant}
    and kind in ('job', 'listener', 'schedule', 'direct') and name = ${registration} and app = ${app} and instance = ${instance}
    limit 1`);
  return series.length > 0;
}
