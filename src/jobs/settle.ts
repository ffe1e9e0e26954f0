// Settle: an open run becomes one row of `run`, and its job ends, in one transaction and only by its owner. A result of
// an owner that has lost the job changes nothing and is named superseded. What failed and may be tried again gets its
// next job here, so that no crash can come between.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, rowSet } from "../storage/word.ts";
import { directKind, releaseTurnOf } from "./direct/release-turn.ts";
import { freeSlots } from "./free-slots.ts";
import { lockGroupsOf, memberEnded } from "./group/advance.ts";
import { isEnding } from "./group/group.ts";
import { jobSettled, tellEnded, type JobEnded, type JobHooks } from "./hooks.ts";
import { doneChannel, jobsChannel, type JobRow } from "./job.ts";
import { makeRetry } from "./make-retry.ts";
import { againAfter, chargedLosses, jobStatusOf, type Ending } from "./outcome.ts";

export type Settled = {
  /** The run ids that were ended. */
  readonly ended: ReadonlySet<string>;
  readonly retried: number;
};

type Owned = Pick<
  JobRow,
  | ("seq" | "run_id" | "lane_seq" | "tenant_id" | "name" | "limits" | "limit_key" | "group_seq" | "awaited" | "kind")
  | "attempt"
>;

const jobColumns = { seq: "integer", run_id: "text", job_status: "text" } as const;
const runColumns = {
  seq: "integer",
  run_id: "text",
  run_status: "text",
  duration_ms: "real",
  error_type: "text",
  error_message: "text",
  error_trace: "text",
  result: "text",
} as const;

export async function settle(tx: Tx, hooks: JobHooks, endings: readonly Ending[]): Promise<Settled> {
  if (endings.length === 0) return { ended: new Set(), retried: 0 };
  // On PostgreSQL the question travels with what follows.
  const facts = hooks.onFact === undefined ? false : (hooks.wantsFacts?.(tx) ?? true);
  await lockRows(tx, endings);
  const rows = endings.map(toRow);
  // A job has `started_at` exactly while it runs: the table's own rule. Asked for its status, SQLite would read all that
  // run for each of ours instead of seeking it.
  await tx.run(sql`insert into run (tenant_id, id, kind, name, job_id, session_seq, attempt, started_at, ended_at,
      duration_ms, status, error_type, error_message, error_trace, result, cause_run_id, root_run_id)
    select job.tenant_id, job.run_id, 'job', job.name, job.id, job.session_seq, job.attempt, job.started_at, ${tx.now},
      v.duration_ms, v.run_status, v.error_type, v.error_message, v.error_trace, v.result,
      job.cause_run_id, job.root_run_id
    from ${rowSet("v", runColumns, rows)} cross join job
    where job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null`);
  const owned = await tx.all<Owned>(sql`update job set status = v.job_status, finished_at = ${tx.now},
      session_seq = null, started_at = null, timeout_at = null, name_slot = null, key_slot = null, lane_slot = null,
      progress = null, progress_note = null,
      key_held = case when key_scope = 'window' then key_held else null end
    from ${rowSet("v", jobColumns, rows)}
    where job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null
    returning job.seq, job.run_id, job.tenant_id, job.name, job.limits, job.limit_key, job.group_seq, job.awaited, job.kind,
      job.lane_seq, job.attempt`);
  await freeSlots(tx, owned);
  if (await hasGate(tx, owned)) tx.wake(jobsChannel);
  if (owned.some((job) => job.awaited !== 0)) tx.wake(doneChannel);
  const retried = await follow(tx, hooks, owned, endings, await facts);
  return { ended: new Set(owned.map((row) => row.run_id ?? "")), retried };
}

function toRow(ending: Ending): Record<keyof typeof jobColumns | keyof typeof runColumns, string | number | null> {
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
  };
}

// A place in a limited lane is free, or a reserved one empty; whoever serves it need not be the one that settles. One
// question for the whole batch, because most lanes have neither.
async function hasGate(tx: Tx, owned: readonly Owned[]): Promise<boolean> {
  if (owned.length === 0) return false;
  const lanes = [...new Set(owned.map((job) => job.lane_seq))];
  const found = await tx.get(sql`select seq from lane where seq ${anyOf("integer", lanes)} and (limit_max is not null
    or exists (select 1 from reservation where reservation.lane_seq = lane.seq and reservation.status = 'active')) limit 1`);
  return found !== undefined;
}

// Between the run's insert and the job's update nobody else may end the run. SQLite has one writer; PostgreSQL locks.
async function lockRows(tx: Tx, endings: readonly Ending[]): Promise<void> {
  if (tx.dialect === "sqlite") return;
  const seqs = endings.map((ending) => ending.seq);
  await tx.all(sql`select seq from job where seq ${anyOf("integer", seqs)} order by seq for update`);
}

/** Makes the retries and tells the rooms above. Runs that simply succeeded cost nothing here when nobody listens. */
async function follow(
  tx: Tx,
  hooks: JobHooks,
  owned: readonly Owned[],
  endings: readonly Ending[],
  facts: boolean,
): Promise<number> {
  const listening = facts || jobSettled.heard;
  const belongs = (job: Owned): boolean =>
    job.group_seq !== null || (job.kind !== null && hooks.quiet?.[job.kind]?.(job) !== true);
  if (!listening && !owned.some(belongs) && endings.every((ending) => ending.status === "success")) return 0;
  const endingOf = new Map(endings.map((ending) => [ending.runId, ending]));
  const interesting = owned.filter(
    (job) => listening || belongs(job) || endingOf.get(job.run_id ?? "")?.status !== "success",
  );
  if (interesting.length === 0) return 0;
  const rows = await tx.all<JobRow>(
    sql`select * from job where seq ${anyOf(
      "integer",
      interesting.map((job) => job.seq),
    )} order by seq`,
  );
  const groups = await lockGroupsOf(tx, rows);
  const over: JobRow[] = [];
  for (const row of rows) {
    const ending = endingOf.get(row.run_id ?? "") as Ending;
    const charged = chargedLosses(row, ending);
    if (charged > 0) await tx.run(sql`update job set losses = losses + ${charged} where seq = ${row.seq}`);
    const group = row.group_seq === null ? undefined : groups.get(row.group_seq);
    const again = group !== undefined && isEnding(group) ? null : againAfter(row, ending);
    const retriedBy = again === null ? null : await makeRetry(tx, row, again);
    if (retriedBy === null) over.push(row);
    await tellEnded(tx, hooks, row, describe(row, ending, retriedBy));
    if (row.kind === directKind) await releaseTurnOf(tx, row);
  }
  // Once all retries are there: of two that end together, the first must see that the other one goes on.
  for (const row of over) {
    const group = row.group_seq === null ? undefined : groups.get(row.group_seq);
    if (group !== undefined) await memberEnded(tx, hooks, group, row);
  }
  return rows.length - over.length;
}

function describe(row: JobRow, ending: Ending, retriedBy: string | null): JobEnded {
  const run = { id: ending.runId, status: ending.status, durationMs: ending.durationMs };
  return {
    tenant: row.tenant_id,
    id: row.id,
    name: row.name,
    status: row.status,
    attempt: row.attempt,
    run,
    retriedBy,
  };
}
