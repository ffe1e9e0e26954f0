// The two statements of every settle: each open run becomes a row of `run`, and its job ends, only by its owner. Most runs
// succeed and have only a result to keep, so these go apart: every value that travels costs each job of the batch.
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { rowSet } from "../storage/word.ts";
import type { JobRow } from "./job.ts";
import { jobStatusOf, type Ending } from "./outcome.ts";

/** What a settle must know of a job to see whether more is to be done than to end it. */
export type Owned = Pick<JobRow, "seq" | "run_id" | "lane_seq" | "awaited" | "kind" | "attempt"> & {
  /** 1 when it has limits or keeps an order, or belongs to a group. */
  readonly belongs: number;
};

/** Ends the runs that are still ours, and returns their jobs. */
export async function endRuns(tx: Tx, endings: readonly Ending[]): Promise<Owned[]> {
  const successes = endings.filter(isPlain);
  const others = successes.length === endings.length ? [] : endings.filter((ending) => !isPlain(ending));
  const ended = successes.length === 0 ? [] : await endSuccesses(tx, successes);
  return others.length === 0 ? ended : [...ended, ...(await endOthers(tx, others))];
}

function isPlain(ending: Ending): boolean {
  return ending.status === "success" && (ending.resultRefused ?? null) === null;
}

async function endSuccesses(tx: Tx, endings: readonly Ending[]): Promise<Owned[]> {
  const rows = endings.map(({ seq, runId, durationMs, result }) => {
    return { seq, run_id: runId, duration_ms: Math.max(0, durationMs), result: result ?? null };
  });
  const columns = { seq: "integer", run_id: "text", duration_ms: "real", result: "text" } as const;
  await tx.run(sql`insert into run (tenant_id, id, kind, name, job_id, session_seq, attempt, started_at, ended_at,
      duration_ms, status, result, cause_run_id, root_run_id, app, instance, registration)
    select job.tenant_id, job.run_id, ${kindOfRun}, job.name, job.id, job.session_seq, job.attempt, job.started_at, ${tx.now},
      v.duration_ms, 'success', v.result, job.cause_run_id, job.root_run_id, job.app, job.instance, job.registration
    from ${rowSet("v", columns, rows)} cross join job where ${stillOurs}`);
  return tx.all<Owned>(sql`update job set status = 'completed', finished_at = ${tx.now}, ${atRest}
    from ${rowSet("v", { seq: "integer", run_id: "text" }, rows)} where ${stillOurs} ${returningOwned}`);
}

async function endOthers(tx: Tx, endings: readonly Ending[]): Promise<Owned[]> {
  const rows = endings.map(toRow);
  const ran = { seq: "integer", run_id: "text", run_status: "text", duration_ms: "real", result: "text" } as const;
  const failed = { error_type: "text", error_message: "text", error_trace: "text", result_refused: "text" } as const;
  await tx.run(sql`insert into run (tenant_id, id, kind, name, job_id, session_seq, attempt, started_at, ended_at,
      duration_ms, status, error_type, error_message, error_trace, result, result_refused,
      cause_run_id, root_run_id, app, instance, registration)
    select job.tenant_id, job.run_id, ${kindOfRun}, job.name, job.id, job.session_seq, job.attempt, job.started_at, ${tx.now},
      v.duration_ms, v.run_status, v.error_type, v.error_message, v.error_trace, v.result, v.result_refused,
      job.cause_run_id, job.root_run_id, job.app, job.instance, job.registration
    from ${rowSet("v", { ...ran, ...failed }, rows)} cross join job where ${stillOurs}`);
  const columns = { seq: "integer", run_id: "text", job_status: "text" } as const;
  return tx.all<Owned>(sql`update job set status = v.job_status, finished_at = ${tx.now}, ${atRest}
    from ${rowSet("v", columns, rows)} where ${stillOurs} ${returningOwned}`);
}

function toRow(ending: Ending) {
  return {
    seq: ending.seq,
    run_id: ending.runId,
    run_status: ending.status,
    job_status: jobStatusOf(ending.status),
    duration_ms: Math.max(0, ending.durationMs),
    error_type: ending.error?.type ?? null,
    error_message: ending.error?.message ?? null,
    error_trace: ending.error?.trace ?? null,
    result: ending.result ?? null,
    result_refused: ending.resultRefused ?? null,
  };
}

// A job has `started_at` exactly while it runs: the table's own rule. Asked for its status, SQLite would read all that
// run for each of ours instead of seeking it.
const stillOurs: Sql = sql`job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null`;

/** A job of its own is of the kind `job`; others are what the room that made them calls them. */
export const kindOfRun: Sql = sql`coalesce(job.kind, 'job')`;

const atRest: Sql = sql`session_seq = null, started_at = null, timeout_at = null, name_slot = null, key_slot = null,
  lane_slot = null, progress = null, progress_note = null,
  key_held = case when key_scope = 'window' then key_held else null end`;

const returningOwned: Sql = sql`returning job.seq, job.run_id, job.lane_seq, job.awaited, job.kind, job.attempt, case
  when job.limits is not null or job.limit_key is not null or job.group_seq is not null then 1 else 0 end as belongs`;
