// The one file that moves jobs between their states. An open job is a row of the line; each move says from which state,
// so that of two that try only one succeeds.
//
//   insert ──► waiting ◄──► queued ──► running ──► (run)        insertJobs (enqueue.ts), park, queue, take, endRuns
//                 └───────────┴──────► cancelled, skipped       cancelInLine, skipInLine
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { amongThe, anyOf, rowSet, rowsInto, skipLocked, valuesInto, type ColumnType } from "../storage/word.ts";
import { readJobs, seqsOf, type JobRow, type WaitsFor } from "./job.ts";
import type { Ending } from "./settle/settle.ts";

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
  take: "update daybook_line set status = 'running', run_id = ?, session_seq = ?, started_at = ?, timeout_at = ? where seq = ?",
  park: "update daybook_line set status = 'waiting', waits_for = ?, waits_key = ?, available_at = ? where seq = ? and started_at is null",
  queue: `update daybook_line set status = 'queued', waits_for = null, waits_key = null
      where seq = ? and status = 'waiting' and waits_for = ? returning seq`,
  leave: "delete from daybook_line where seq = ? and started_at is null returning seq, waits_for, waits_key, awaited",
  end: "delete from daybook_line where seq = ?",
  endPlain: `delete from daybook_line
      where seq = ? and run_id = ? and started_at is not null and ties = 0 and awaited = 0 and kind is null`,
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
  await tx.run(taking(tx, sessionSeq, sql`${rowSet("v", columns, jobs)}`));
}

/** PostgreSQL: the same for the rows `v`, which may come from a claim's own statement (turn.ts). */
export function taking(tx: Tx, sessionSeq: number, v: Sql): Sql {
  return sql`update daybook_line as line set status = 'running', run_id = v.run_id, session_seq = ${sessionSeq},
      started_at = ${tx.now}, timeout_at = ${tx.now} + v.timeout_ms
    from ${v} where line.seq = v.seq`;
}

export type TakenJob = Claimed & { readonly timeout_ms: number | null };

/** Parks jobs that the caller has just found in line. */
export async function park(tx: Tx, jobs: readonly Parked[]): Promise<void> {
  if (jobs.length === 0) return;
  const columns = { waits_for: "text", waits_key: "text", available_at: "integer", seq: "integer" } as const;
  const parked =
    tx.dialect === "sqlite"
      ? rowsInto(onSqlite.park, Object.keys(columns), jobs)
      : sql`update daybook_line as line set status = 'waiting', waits_for = v.waits_for, waits_key = v.waits_key,
          available_at = v.available_at
        from ${rowSet("v", columns, jobs)} where line.seq = v.seq and line.started_at is null`;
  await tx.run(parked);
}

/** Queues those of `which` (a select of numbers) that still wait for this, and names them. */
export async function queue(tx: Tx, which: Sql, waitsFor: WaitsFor): Promise<number[]> {
  const values = ({ seq }: Numbered): [number, WaitsFor] => [seq, waitsFor];
  const queued = await (tx.dialect === "sqlite"
    ? eachOf(tx, which, (rows) => valuesInto(onSqlite.queue, rows.map(values)))
    : tx.all<{ seq: number }>(sql`update daybook_line set status = 'queued', waits_for = null, waits_key = null
        where seq ${amongThe(which)} and status = 'waiting' and waits_for = ${waitsFor} returning seq`));
  return seqsOf(queued);
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

/** Queues one job, if it still waits for this. A transaction that holds it is waited for; a claim, which never waits, passes it by. */
export async function queueOne(tx: Tx, seq: number, waitsFor: WaitsFor, { passBy = false } = {}): Promise<boolean> {
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

/** Removes a job that this transaction has inserted, as if it had never been. */
export async function takeBack(tx: Tx, seq: number): Promise<void> {
  await tx.run(sql`delete from daybook_line where seq = ${seq}`);
  await tx.run(sql`delete from daybook_job where seq = ${seq}`);
}

/** Says whether the end of a job concerns this as well. */
export async function retie(tx: Tx, seq: number, bit: number, ties: boolean): Promise<void> {
  const changed = ties ? sql`ties | ${bit}` : sql`ties & ~${bit}`;
  await tx.run(sql`update daybook_line set ties = ${changed} where seq = ${seq}`);
}

/** Cancels those of `which` that have not begun: they never run, and have no run. Returns them as they are then. */
export async function cancelInLine(tx: Tx, which: Sql): Promise<JobRow[]> {
  const before = await leaveLine(tx, which);
  if (before.length === 0) return [];
  await tx.run(sql`update daybook_job set cancelled_at = ${tx.now} where seq ${anyOf("integer", seqsOf(before))}`);
  return afterwards(tx, before);
}

/** Skips those of `which` that have not begun. Each writes a run, so that the history says that it was not forgotten. */
export async function skipInLine(tx: Tx, which: Sql): Promise<JobRow[]> {
  const before = await leaveLine(tx, which);
  if (before.length === 0) return [];
  const runs = before.map(({ seq }) => ({ seq, run_id: tx.ids() }));
  await tx.run(sql`insert into daybook_run (${rawSql(runColumns)})
    select ${rawSql(runOfJob)}, v.run_id, null, ${tx.now}, ${tx.now}, 0, 'skipped', null, null, null, null, null
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

// What it waited for, and whether a caller waits for it, went with its row of the line.
async function afterwards(tx: Tx, before: readonly Left[]): Promise<JobRow[]> {
  const rows = await readJobs(tx, seqsOf(before));
  const left = new Map(before.map((row) => [row.seq, row]));
  return rows.map((row) => ({ ...row, ...left.get(row.seq) }));
}

/** What stood in the line of a job whose run has ended. */
export type Owned = Pick<JobRow, "seq" | "run_id" | "lane_seq" | "awaited" | "kind" | "cancel_requested_at"> & {
  readonly ties: number;
  readonly position: number;
};

const owned = "seq, run_id, lane_seq, awaited, kind, cancel_requested_at, ties, position";

export type EndedRuns = {
  /** The jobs whose end concerns more than themselves, and every job whose run did not simply succeed. */
  readonly more: readonly Owned[];
  /** The runs that were no longer ours: nothing was written for them. */
  readonly late: ReadonlySet<string>;
};

// The run id is the fence. A row has `started_at` exactly while it runs: asked for its status, the planner would read all
// that run for each of ours instead of seeking it.
const stillOurs = "line.seq = v.seq and line.run_id = v.run_id and line.started_at is not null";

/** A job of its own is of the kind `job`; others are what the room that made them calls them. */
const runOfJob = `job.tenant_id, coalesce(job.kind, 'job'), job.name, job.seq, job.attempt, job.cause_run_id,
  job.root_run_id, job.app, job.instance, job.registration`;

const runColumns = `tenant_id, kind, name, job_seq, attempt, cause_run_id, root_run_id, app, instance, registration,
  id, session_seq, started_at, ended_at, duration_ms, status, error_type, error_message, error_trace, result,
  result_refused`;

/** How runs end: the columns that an ending brings, and what its run makes of them. By a clock that was set back meanwhile a run
 *  would end before it began, so it ends when it began. */
const simply = endOf(
  { ...claimed, ended_at: "integer", duration_ms: "real", result: "text" },
  "v.duration_ms, 'success', null, null, null, v.result, null",
);
const anyhow = endOf(
  {
    ...simply.columns,
    status: "text",
    error_type: "text",
    error_message: "text",
    error_trace: "text",
    result_refused: "text",
  },
  "v.duration_ms, v.status, v.error_type, v.error_message, v.error_trace, v.result, v.result_refused",
);

function endOf(columns: Readonly<Record<string, ColumnType>>, ended: string) {
  const names = Object.keys(columns);
  const keep = `insert into daybook_run (${runColumns}) select ${runOfJob}, line.run_id, line.session_seq, line.started_at,
    max(line.started_at, v.ended_at), ${ended}`;
  const each = `with v (${names.join(", ")}) as (values (${names.map(() => "?").join(", ")}))
    ${keep} from v cross join daybook_line line cross join daybook_job job where ${stillOurs} and job.seq = line.seq`;
  return { columns, names, ended, each: each };
}

/** Ends the runs that are still ours: each row of the line becomes a row of `run`. */
export async function endRuns(tx: Tx, endings: readonly Ending[]): Promise<EndedRuns> {
  // Most batches only succeed and have a result to keep: every value that travels costs each job.
  const plain = endings.every(isPlain);
  const rows = endings.map((ending) => toRow(tx, ending, plain));
  return tx.dialect === "sqlite" ? endOnSqlite(tx, plain, rows) : endOnPostgres(tx, plain, rows);
}

function isPlain({ status, resultRefused, endedAt }: Ending): boolean {
  return status === "success" && (resultRefused ?? null) === null && endedAt === undefined;
}

type EndRow = ReturnType<typeof toRow>;

function toRow(tx: Tx, ending: Ending, plain: boolean) {
  const { seq, runId: run_id, durationMs, result = null, error } = ending;
  const ended = { seq, run_id, ended_at: ending.endedAt ?? tx.now, duration_ms: Math.max(0, durationMs), result };
  if (plain) return ended;
  return {
    ...ended,
    status: ending.status,
    error_type: error?.type ?? null,
    error_message: error?.message ?? null,
    error_trace: error?.trace ?? null,
    result_refused: ending.resultRefused ?? null,
  };
}

// Most ends concern no other job, and a row that says so can leave at once. The others are named before they leave: to be told of
// each row that is deleted would cost a microsecond a job.
async function endOnSqlite(tx: Tx, plain: boolean, rows: readonly EndRow[]): Promise<EndedRuns> {
  const { each, names } = plain ? simply : anyhow;
  const kept = await tx.run(rowsInto(each, names, rows));
  const allOurs = kept === rows.length;
  const quiet = plain && allOurs ? await tx.run(rowsInto(onSqlite.endPlain, ["seq", "run_id"], rows)) : 0;
  if (quiet === rows.length) return { more: [], late: nobody };
  const more = await tx.all<Owned>(sql`select ${rawSql(`line.${owned.replaceAll(", ", ", line.")}`)}
    from ${rowSet("v", claimed, rows)} cross join daybook_line line where ${rawSql(stillOurs)}`);
  await tx.run(rowsInto(onSqlite.end, ["seq"], more));
  return { more, late: allOurs ? nobody : lateOnes(rows, more) };
}

// A finish ends one run by itself. A statement without lists costs the server a fifth less than the one for many.
async function endOneOnPostgres(tx: Tx, row: EndRow): Promise<EndedRuns> {
  const ours = await tx.all<Owned>(sql`with v as (
      delete from daybook_line where seq = ${row.seq} and run_id = ${row.run_id} and started_at is not null
        returning ${rawSql(owned)}, session_seq, started_at),
    run as (insert into daybook_run (${rawSql(runColumns)})
      select ${rawSql(runOfJob)}, v.run_id, v.session_seq, v.started_at, greatest(v.started_at, ${row.ended_at}::bigint),
        ${row.duration_ms}::double precision, 'success', null, null, null, ${row.result}::text, null
      from v join daybook_job job on job.seq = v.seq)
    select ${rawSql(owned)} from v`);
  const more = ours.filter(({ ties, awaited, kind }) => ties !== 0 || awaited !== 0 || kind !== null);
  return { more, late: lateOnes([row], ours) };
}

// PostgreSQL deletes and inserts in one statement, because each one costs a round trip; SQLite cannot.
async function endOnPostgres(tx: Tx, plain: boolean, rows: readonly EndRow[]): Promise<EndedRuns> {
  const [first] = rows;
  if (plain && first !== undefined && rows.length === 1) return endOneOnPostgres(tx, first);
  const { columns, ended } = plain ? simply : anyhow;
  const concernsOthers = plain ? sql`(v.ties <> 0 or v.awaited <> 0 or v.kind is not null)` : sql`true`;
  const found = await tx.all<{ kept: number } & (Owned | { readonly seq: null })>(sql`with v as (
      delete from daybook_line line using ${rowSet("v", columns, rows)} where ${rawSql(stillOurs)}
        returning v.*, line.session_seq, line.started_at, line.lane_seq, line.awaited, line.kind, line.cancel_requested_at,
          line.ties, line.position),
    run as (insert into daybook_run (${rawSql(runColumns)})
      select ${rawSql(runOfJob)}, v.run_id, v.session_seq, v.started_at, greatest(v.started_at, v.ended_at), ${rawSql(ended)}
      from v join daybook_job job on job.seq = v.seq),
    counted as (select count(*) as kept from v)
    select counted.kept, ${rawSql(owned)} from counted
    left join v on ${concernsOthers} or counted.kept <> ${rows.length}`);
  const more = found.filter((row) => row.seq !== null);
  return { more, late: found[0]?.kept === rows.length ? nobody : lateOnes(rows, more) };
}

const nobody: ReadonlySet<string> = new Set();

/** When not all were ours, all that were are named. */
function lateOnes(rows: readonly Claimed[], ours: readonly Owned[]): ReadonlySet<string> {
  const kept = new Set(ours.map(({ run_id }) => run_id));
  return new Set(rows.flatMap(({ run_id }) => (kept.has(run_id) ? [] : run_id)));
}

/** In a copy of a book: whatever was open, also what ran, waits for its release, but for what waits behind another of its group
 *  or of its kind's own order (hold.ts). */
export const holdOpen: Sql = sql`update daybook_line set status = 'waiting', waits_for = 'release',
    waits_key = coalesce(kind, 'job'), run_id = null, session_seq = null, started_at = null, timeout_at = null,
    progress = null, progress_note = null
  where coalesce(waits_for, '') <> 'group' and not (coalesce(waits_for, '') = 'order' and order_key is null)`;
