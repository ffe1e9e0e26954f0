// The one file that moves jobs between their states. An open job is a row of the line; whoever moves it says from which state,
// so that of two that try only one does.
//
//   insert ──► waiting ◄──► queued ──► running ──► (run)        insertLines, park, queue, take, endRuns
//                 └───────────┴──────► cancelled, skipped       cancelInLine, skipInLine
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { amongThe, anyOf, rowSet, rowsInto, skipLocked, valuesInto, type Part } from "../storage/word.ts";
import { readJobs, type JobRow, type WaitsFor } from "./job.ts";
import type { Ending } from "./outcome.ts";

/** What the end of a job concerns besides itself, as bits of `ties`. */
export const tie = { key: 1, limit: 2, order: 4, group: 8 } as const;

/** A job that was claimed, and the run id that proves it. */
export type Claimed = { readonly seq: number; readonly run_id: string };

/** Why a job cannot run now. `waits_key` names the obstacle; null where the time alone is. */
export type Parked = {
  readonly seq: number;
  readonly waits_for: WaitsFor;
  readonly waits_key: string | null;
  readonly available_at: number;
};

const claimed = { seq: "integer", run_id: "text" } as const;

// SQLite runs one statement for each row: it seeks the row whatever the planner believes of the line's size, which changes all
// the time, and it is faster than a join with a list. PostgreSQL gets the list, because each statement costs a round trip.
const onSqlite = {
  take: Object.freeze([
    "update daybook_line set status = 'running', run_id = ?, session_seq = ?, started_at = ?, timeout_at = ? where seq = ?",
  ] as const),
  park: Object.freeze([
    "update daybook_line set status = 'waiting', waits_for = ?, waits_key = ?, available_at = ? where seq = ? and started_at is null",
  ] as const),
  queue: Object.freeze([
    `update daybook_line set status = 'queued', waits_for = null, waits_key = null
      where seq = ? and status = 'waiting' and waits_for = ? returning seq`,
  ] as const),
  leave: Object.freeze([
    "delete from daybook_line where seq = ? and started_at is null returning seq, waits_for, waits_key, awaited",
  ] as const),
  end: Object.freeze(["delete from daybook_line where seq = ?"] as const),
};

/** Starts the runs of jobs that the caller has just found in line. */
export async function take(tx: Tx, sessionSeq: number, jobs: readonly TakenJob[]): Promise<void> {
  if (tx.dialect === "sqlite") {
    const timeoutAt = (ms: number | null): number | null => (ms === null ? null : tx.now + ms);
    const rows = jobs.map((job) => [job.run_id, sessionSeq, tx.now, timeoutAt(job.timeout_ms), job.seq]);
    await tx.run(valuesInto(onSqlite.take, rows));
    return;
  }
  const columns = { ...claimed, timeout_ms: "integer" } as const;
  await tx.run(sql`update daybook_line as line set status = 'running', run_id = v.run_id, session_seq = ${sessionSeq},
      started_at = ${tx.now}, timeout_at = ${tx.now} + v.timeout_ms
    from ${rowSet("v", columns, jobs)} where line.seq = v.seq`);
}

export type TakenJob = Claimed & { readonly timeout_ms: number | null };

/** Parks jobs that the caller has just found in line. */
export async function park(tx: Tx, jobs: readonly Parked[]): Promise<void> {
  if (jobs.length === 0) return;
  const columns = { waits_for: "text", waits_key: "text", available_at: "integer", seq: "integer" } as const;
  if (tx.dialect === "sqlite") {
    await tx.run(rowsInto(onSqlite.park, Object.keys(columns), jobs));
    return;
  }
  await tx.run(sql`update daybook_line as line set status = 'waiting', waits_for = v.waits_for, waits_key = v.waits_key,
      available_at = v.available_at
    from ${rowSet("v", columns, jobs)} where line.seq = v.seq and line.started_at is null`);
}

/** Queues those of `which` (a select of numbers) that still wait for this, and names them. */
export async function queue(tx: Tx, which: Sql, waitsFor: WaitsFor): Promise<number[]> {
  const queued = await (tx.dialect === "sqlite"
    ? eachOf(tx, which, (rows) => rowsInto(onSqlite.queue, ["seq", "waits_for"], withReason(rows, waitsFor)))
    : tx.all<{ seq: number }>(sql`update daybook_line set status = 'queued', waits_for = null, waits_key = null
        where seq ${amongThe(which)} and status = 'waiting' and waits_for = ${waitsFor} returning seq`));
  return queued.map((row) => row.seq);
}

function withReason(rows: readonly Numbered[], waits_for: WaitsFor): { seq: number; waits_for: WaitsFor }[] {
  return rows.map(({ seq }) => ({ seq, waits_for }));
}

type Numbered = { readonly seq: number };

/** On SQLite: reads the numbers first, then runs the statement for each of them. */
async function eachOf<R extends Numbered>(
  tx: Tx,
  which: Sql,
  statement: (rows: readonly Numbered[]) => Sql,
): Promise<R[]> {
  const rows = await tx.all<Numbered>(which);
  return rows.length === 0 ? [] : tx.all<R>(statement(rows));
}

/** Queues one job, if it still waits for this. Whoever holds it is waited for; a claim, which waits for nobody, passes it by. */
export async function queueOne(
  tx: Tx,
  seq: number,
  waitsFor: WaitsFor,
  { passBy = false }: { readonly passBy?: boolean } = {},
): Promise<boolean> {
  const free = passBy ? sql`${skipLocked}` : sql``;
  return (await queue(tx, sql`select seq from daybook_line where seq = ${seq} ${free}`, waitsFor)).length === 1;
}

/** Where a job that has not begun is to stand. */
export type Standing = {
  readonly waitsFor: WaitsFor | null;
  readonly waitsKey?: string | null;
  readonly availableAt: number;
};

/** Queues a job that has not begun, or lets it wait for something else. False when it has begun, or ended. */
export async function restand(tx: Tx, seq: number, to: Standing): Promise<boolean> {
  const changed = await tx.run(sql`update daybook_line set status = ${to.waitsFor === null ? "queued" : "waiting"},
      waits_for = ${to.waitsFor}, waits_key = ${to.waitsKey ?? null}, available_at = ${to.availableAt}
    where seq = ${seq} and started_at is null`);
  return changed === 1;
}

/** Says whether the end of a job concerns this as well. */
export async function retie(tx: Tx, seq: number, bit: number, ties: boolean): Promise<void> {
  await tx.run(
    ties
      ? sql`update daybook_line set ties = ties | ${bit} where seq = ${seq}`
      : sql`update daybook_line set ties = ties & ~${bit} where seq = ${seq}`,
  );
}

/** Cancels those of `which` that have not begun: they never run, and have no run. Returns them as they are then. */
export async function cancelInLine(tx: Tx, which: Sql): Promise<JobRow[]> {
  const before = await leaveLine(tx, which);
  if (before.length === 0) return [];
  const seqs = before.map((row) => row.seq);
  await tx.run(sql`update daybook_job set cancelled_at = ${tx.now} where seq ${anyOf("integer", seqs)}`);
  return afterwards(tx, before);
}

/** Skips those of `which` that have not begun. A skipped job writes a run, so that the history says that it was not
 *  forgotten. */
export async function skipInLine(tx: Tx, which: Sql): Promise<JobRow[]> {
  const before = await leaveLine(tx, which);
  if (before.length === 0) return [];
  const runs = before.map(({ seq }) => ({ seq, run_id: tx.ids() }));
  await tx.run(sql`insert into daybook_run (${runColumns})
    select ${runOfJob}, v.run_id, null, ${tx.now}, ${tx.now}, 0, 'skipped', null, null, null, null, null
    from ${rowSet("v", claimed, runs)} cross join daybook_job job where job.seq = v.seq`);
  return afterwards(tx, before);
}

type Left = Pick<JobRow, "seq" | "waits_for" | "waits_key" | "awaited">;

async function leaveLine(tx: Tx, which: Sql): Promise<Left[]> {
  if (tx.dialect === "sqlite") return eachOf(tx, which, (rows) => rowsInto(onSqlite.leave, ["seq"], rows));
  return tx.all<Left>(sql`delete from daybook_line where seq = any(array(
      select seq from daybook_line where seq = any(array(${which})) and started_at is null order by seq for update))
    returning seq, waits_for, waits_key, awaited`);
}

// What it waited for, and whether somebody waits for it, went with its row of the line.
async function afterwards(tx: Tx, before: readonly Left[]): Promise<JobRow[]> {
  const rows = await readJobs(
    tx,
    before.map((row) => row.seq),
  );
  const left = new Map(before.map((row) => [row.seq, row]));
  return rows.map((row) => ({ ...row, ...left.get(row.seq) }));
}

/** What stood in the line of a job whose run has ended. */
export type Owned = Pick<JobRow, "seq" | "run_id" | "lane_seq" | "awaited" | "kind" | "cancel_requested_at"> & {
  readonly ties: number;
  readonly position: number;
};

const ownedNames = ["seq", "run_id", "lane_seq", "awaited", "kind", "cancel_requested_at", "ties", "position"];

export type EndedRuns = {
  /** The jobs whose end concerns more than themselves, and every job whose run did not simply succeed. */
  readonly more: readonly Owned[];
  /** The runs that were no longer ours: nothing was written for them. */
  readonly late: ReadonlySet<string>;
};

const successColumns = { ...claimed, duration_ms: "real", result: "text" } as const;
const endColumns = {
  ...successColumns,
  status: "text",
  ended_at: "integer",
  error_type: "text",
  error_message: "text",
  error_trace: "text",
  result_refused: "text",
} as const;

type Ends = { readonly from: Part; readonly ended: Sql; readonly plain: boolean; readonly rows: readonly Claimed[] };

/** Ends the runs that are still ours: each row of the line becomes a row of `run`. */
export async function endRuns(tx: Tx, endings: readonly Ending[]): Promise<EndedRuns> {
  // Most batches only succeed and have a result to keep: every value that travels costs each job.
  const plain = endings.every(isPlain);
  const rows = endings.map((ending) => toRow(tx, ending, plain));
  const from = plain ? rowSet("v", successColumns, rows) : rowSet("v", endColumns, rows as FullRow[]);
  const ended = plain
    ? sql`${tx.now}, v.duration_ms, 'success', null, null, null, v.result, null`
    : sql`v.ended_at, v.duration_ms, v.status, v.error_type, v.error_message, v.error_trace, v.result, v.result_refused`;
  return (tx.dialect === "sqlite" ? endOnSqlite : endOnPostgres)(tx, { from, ended, plain, rows });
}

function isPlain({ status, resultRefused, endedAt }: Ending): boolean {
  return status === "success" && (resultRefused ?? null) === null && endedAt === undefined;
}

type FullRow = { readonly [Name in keyof typeof endColumns]: string | number | null };

function toRow(tx: Tx, ending: Ending, plain: boolean): Claimed & Pick<FullRow, keyof typeof successColumns> {
  const { seq, runId: run_id, durationMs, result = null } = ending;
  const duration_ms = Math.max(0, durationMs);
  if (plain) return { seq, run_id, duration_ms, result };
  const full = {
    seq,
    run_id,
    duration_ms,
    result,
    status: ending.status,
    ended_at: ending.endedAt ?? tx.now,
    error_type: ending.error?.type ?? null,
    error_message: ending.error?.message ?? null,
    error_trace: ending.error?.trace ?? null,
    result_refused: ending.resultRefused ?? null,
  };
  return full;
}

/** Whether the end of a run that succeeded concerns anybody else. */
function concernsOthers(alias: string): Sql {
  return rawSql(`(${alias}.ties <> 0 or ${alias}.awaited <> 0 or ${alias}.kind is not null)`);
}

function ownedOf(alias: string): Sql {
  return rawSql(ownedNames.map((name) => `${alias}.${name}`).join(", "));
}

// To be told of each row that is deleted would cost a microsecond a job, so one look asks for those that matter.
async function endOnSqlite(tx: Tx, { from, ended, plain, rows }: Ends): Promise<EndedRuns> {
  const kept = await tx.run(sql`insert into daybook_run (${runColumns})
    select ${runOfJob}, line.run_id, line.session_seq, line.started_at, ${ended}
    from ${from} cross join daybook_line line cross join daybook_job job where ${stillOurs} and job.seq = line.seq`);
  const some = plain && kept === rows.length ? concernsOthers("line") : sql`true`;
  const more = await tx.all<Owned>(sql`select ${ownedOf("line")} from ${from} cross join daybook_line line
    where ${stillOurs} and ${some}`);
  const late = kept === rows.length ? nobody : lateOnes(rows, more);
  const ours = rows.flatMap(({ seq, run_id }) => (late.has(run_id) ? [] : [[seq]]));
  await tx.run(valuesInto(onSqlite.end, ours));
  return { more, late };
}

// PostgreSQL deletes and inserts in one statement, because each one costs a round trip; SQLite cannot.
async function endOnPostgres(tx: Tx, { from, ended, plain, rows }: Ends): Promise<EndedRuns> {
  const found = await tx.all<{ kept: number } & (Owned | { readonly seq: null })>(sql`with v as (
      delete from daybook_line line using ${from} where ${stillOurs} returning v.*, line.session_seq, line.started_at,
        line.lane_seq, line.awaited, line.kind, line.cancel_requested_at, line.ties, line.position),
    run as (insert into daybook_run (${runColumns})
      select ${runOfJob}, v.run_id, v.session_seq, v.started_at, ${ended}
      from v join daybook_job job on job.seq = v.seq),
    counted as (select count(*) as kept from v)
    select counted.kept, ${ownedOf("v")} from counted
    left join v on ${plain ? concernsOthers("v") : sql`true`} or counted.kept <> ${rows.length}`);
  const more = found.filter((row) => row.seq !== null);
  return { more, late: found[0]?.kept === rows.length ? nobody : lateOnes(rows, more) };
}

const nobody: ReadonlySet<string> = new Set();

/** When not all were ours, all that were are named. */
function lateOnes(rows: readonly Claimed[], ours: readonly Owned[]): ReadonlySet<string> {
  const kept = new Set(ours.map(({ run_id }) => run_id));
  return new Set(rows.flatMap(({ run_id }) => (kept.has(run_id) ? [] : run_id)));
}

// The run id is the fence. A row has `started_at` exactly while it runs: asked for its status, the planner would read all
// that run for each of ours instead of seeking it.
const stillOurs: Sql = sql`line.seq = v.seq and line.run_id = v.run_id and line.started_at is not null`;

/** A job of its own is of the kind `job`; others are what the room that made them calls them. */
const runOfJob: Sql = sql`job.tenant_id, coalesce(job.kind, 'job'), job.name, job.seq, job.attempt, job.cause_run_id,
  job.root_run_id, job.app, job.instance, job.registration`;

const runColumns: Sql = sql`tenant_id, kind, name, job_seq, attempt, cause_run_id, root_run_id, app, instance, registration,
  id, session_seq, started_at, ended_at, duration_ms, status, error_type, error_message, error_trace, result,
  result_refused`;
