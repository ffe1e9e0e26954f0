// Everything about the bare script that knows the tables of a book: the rows it writes and the statements of one turn of a
// worker, in the order of the engine, those that look at the session, its lanes and their gates included. When the engine's
// statements change, this file changes with them, and nothing else here does.
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { createIds, systemRandom } from "../../src/core/id.ts";
import { systemClock } from "../../src/core/clock.ts";
import { migrations } from "../../src/open/migrations.ts";
import { migrationTexts } from "../../src/storage/migrate.ts";

export type BareClaim = { readonly seq: number; readonly run_id: string; readonly params: string };

export type BareStatements = {
  /** A job for each of these params. */
  insert(now: number, params: readonly string[]): void;
  /** Ends all of these with success and a run each. */
  settle(now: number, ended: readonly BareClaim[]): void;
  /** Takes at most `most` jobs. */
  claim(now: number, most: number): BareClaim[];
};

const ids = createIds(systemClock, systemRandom);

const lane = 1_000_000;

/** An empty book with one lane and one session. */
export function prepareBareBook(db: DatabaseSync): BareStatements {
  for (const migration of migrations) for (const text of migrationTexts(migration, "sqlite")) db.exec(text);
  db.exec(`insert into daybook_lane (seq, tenant_id, queue) values (${lane}, 'default', 'default');
    insert into daybook_session (id, host, pid, started_at, last_heartbeat_at) values ('bare', 'bare', 1, 1, 1)`);
  return { insert: prepareInsert(db), settle: prepareSettle(db), claim: prepareClaim(db) };
}

/** Runs an insert for each row, ten at a time as long as there are ten, as the engine does. */
function inTens(db: DatabaseSync, text: string): (rows: readonly (readonly SQLInputValue[])[]) => void {
  const one = db.prepare(text);
  const ten = db.prepare(
    text.replace(/values (\([?, ]+\))/, (_, row: string) => `values ${Array(10).fill(row).join(", ")}`),
  );
  return (rows) => {
    let next = 0;
    for (; next + 10 <= rows.length; next += 10) ten.run(...rows.slice(next, next + 10).flat());
    for (; next < rows.length; next++) one.run(...(rows[next] ?? []));
  };
}

function prepareInsert(db: DatabaseSync): BareStatements["insert"] {
  const last = db.prepare("select max(seq) as seq from daybook_job");
  const insertJobs = inTens(
    db,
    `insert into daybook_job (seq, tenant_id, id, lane_seq, name, priority, created_at, params, attempts,
      losses_max, timeout_ms, backoff)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
  );
  const insertLines = inTens(
    db,
    `insert into daybook_line (seq, lane_seq, status, waits_for, waits_key, priority, position,
      available_at, ties)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
  );
  return (now, params) => {
    const { seq: max } = last.get() as { seq: number | null };
    const first = (max ?? 0) + 1;
    insertJobs(params.map((text, n) => [first + n, "default", ids(), lane, "noop", 0, now, text, 4, 3, null, null]));
    insertLines(params.map((_, n) => [first + n, lane, "queued", null, null, 0, (first + n) * 100, now, 0]));
  };
}

function prepareSettle(db: DatabaseSync): BareStatements["settle"] {
  const listens = db.prepare("select stamp from daybook_listener_change where one = 1");
  const keep = inTens(
    db,
    `with v (seq, run_id, ended_at, duration_ms, result) as (values (?, ?, ?, ?, ?))
    insert into daybook_run (tenant_id, kind, name, job_seq, attempt, cause_run_id, root_run_id, app, instance,
      registration, id, session_seq, started_at, ended_at, duration_ms, status, error_type, error_message,
      error_trace, result, result_refused)
    select job.tenant_id, coalesce(job.kind, 'job'), job.name, job.seq, job.attempt, job.cause_run_id, job.root_run_id,
      job.app, job.instance, job.registration, line.run_id, line.session_seq, line.started_at, v.ended_at,
      v.duration_ms, 'success', null, null, null, v.result, null
    from v cross join daybook_line line cross join daybook_job job
    where line.seq = v.seq and line.run_id = v.run_id and line.started_at is not null and job.seq = line.seq`,
  );
  const end = db.prepare(`delete from daybook_line
    where seq = ? and run_id = ? and started_at is not null and ties = 0 and awaited = 0 and kind is null`);
  const gated = db.prepare(`select seq from daybook_lane lane where seq = ? and (limit_max is not null or exists (
      select 1 from daybook_reservation reservation where reservation.lane_seq = lane.seq
        and reservation.status = 'active')) limit 1`);
  return (now, ended) => {
    listens.get();
    keep(ended.map(({ seq, run_id }) => [seq, run_id, now, 0.1, null]));
    for (const { seq, run_id } of ended) end.run(seq, run_id);
    gated.get(lane);
  };
}

function prepareClaim(db: DatabaseSync): BareStatements["claim"] {
  const alive = db.prepare("select seq from daybook_session where seq = 1 and status = 'running'");
  const firstLane = (from: string): string => `select min(line.lane_seq) from daybook_line line indexed by jobs_to_claim
    where line.status = 'queued' and line.lane_seq >= ${from}`;
  const chain = (name: string, from: string, next: string, goesOn: string): string => `${name} (seq, place) as (
    select (${firstLane(from)}), 1
    union all select (${firstLane(next)}), place + 1 from ${name} where ${goesOn} and place < 20)`;
  const lanes = db.prepare(`with recursive ${chain("ahead", "?1", "ahead.seq + 1", "ahead.seq is not null")},
      ${chain("around", "0", "around.seq + 1", "around.seq < ?1")}
    select seq, 0 as round from ahead where seq is not null union all select seq, 1 from around where seq <= ?1
    order by 2, 1`);
  const entered = db.prepare(`select lane.*, (select 1 from daybook_reservation reservation
      where reservation.lane_seq = lane.seq and reservation.status = 'active' and reservation.expires_at > ?) as reserved
    from daybook_lane lane where seq = ?`);
  const paused = db.prepare("select tenant_id, name from daybook_paused_name");
  const candidates = db.prepare(`select job.seq, job.id, job.tenant_id, job.name, job.params, job.attempt, job.attempts,
      job.timeout_ms, line.available_at, job.alone, job.losses_max, job.cause_run_id, job.root_run_id, job.created_at,
      job.tags, job.limits, job.limit_key, job.key_scope, job.chain_seq, job.about, job.group_seq, job.kind,
      job.kind_seq, job.traceparent, line.lane_seq, '' as queue, '' as run_id
    from daybook_line line indexed by jobs_to_claim cross join daybook_job job
    where line.status = 'queued' and line.lane_seq = ? and job.seq = line.seq
    order by line.priority desc, line.position, line.seq limit +?`);
  const take = db.prepare(`update daybook_line set status = 'running', run_id = ?, session_seq = ?, started_at = ?,
      timeout_at = ?
    where seq = ?`);
  return (now, most) => {
    alive.get();
    lanes.all(lane);
    lanes.all(lane);
    entered.all(now, lane);
    paused.all();
    const rows = candidates.all(lane, most) as unknown as { seq: number; params: string }[];
    const claimed = rows.map(({ seq, params }) => ({ seq, params, run_id: ids() }));
    for (const { seq, run_id } of claimed) take.run(run_id, 1, now, null, seq);
    return claimed;
  };
}
