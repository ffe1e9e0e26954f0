// Everything about the bare script that knows the tables of a book: the rows it writes and the statements of one turn of a
// worker, in the order of the engine, those that look at the session, its lanes and their gates included. When the engine's
// statements change, this file changes with them, and nothing else here does.
import type { DatabaseSync } from "node:sqlite";
import { createIds } from "../../src/core/id.ts";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";
import { migrations } from "../../src/migrations.ts";
import { migrationTexts } from "../../src/storage/migrate.ts";

export type BareClaim = { readonly seq: number; readonly run_id: string; readonly params: string };

export type BareStatements = {
  /** One job. */
  insert(now: number, params: string): void;
  /** Ends all of these with success and a run each. */
  settle(now: number, ended: readonly BareClaim[]): void;
  /** Takes at most `most` jobs. */
  claim(now: number, most: number): BareClaim[];
};

const ids = createIds(systemClock, systemRandom);

/** An empty book with one lane and one session. */
export function prepareBareBook(db: DatabaseSync): BareStatements {
  for (const migration of migrations) for (const text of migrationTexts(migration, "sqlite")) db.exec(text);
  db.exec(`insert into lane (tenant_id, queue) values ('default', 'default');
    insert into session (id, host, pid, started_at, last_heartbeat_at) values ('bare', 'bare', 1, 1, 1)`);
  return { insert: prepareInsert(db), settle: prepareSettle(db), claim: prepareClaim(db) };
}

function prepareInsert(db: DatabaseSync): BareStatements["insert"] {
  const insert = db.prepare(`insert into job (position, tenant_id, id, lane_seq, name, status, waits_for, waits_key,
      priority, created_at, available_at, params, origin, attempt, attempts, losses, losses_max, backoff, timeout_ms,
      retry_of, alone, key, key_held, key_scope, key_until, idempotency_key, limits, limit_key, tags, cause_run_id,
      root_run_id)
    values ((select coalesce(max(seq), 0) + 1 from job) * 100, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`);
  return (now, params) => {
    insert.run(
      ...["default", ids(), 1, "noop", "queued", null, null, 0, now, now, params, "enqueued", 1, 4, 0, 3],
      ...[null, null, null, 0, null, null, null, null, null, null, null, null, null, null],
    );
  };
}

const ran =
  "(select value ->> 0 as seq, value ->> 1 as run_id, value ->> 2 as ms, value ->> 3 as result from json_each(?)) as v";
const named = "(select value ->> 0 as seq, value ->> 1 as run_id from json_each(?)) as v";
const ours = "job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null";

function prepareSettle(db: DatabaseSync): BareStatements["settle"] {
  const listens = db.prepare("select stamp from listener_change where one = 1");
  const keep =
    db.prepare(`insert into run (tenant_id, id, kind, name, job_id, session_seq, attempt, started_at, ended_at,
      duration_ms, status, result, cause_run_id, root_run_id, app, instance, registration)
    select job.tenant_id, job.run_id, coalesce(job.kind, 'job'), job.name, job.id, job.session_seq, job.attempt,
      job.started_at, ?, v.ms, 'success', v.result, job.cause_run_id, job.root_run_id, job.app, job.instance,
      job.registration
    from ${ran} cross join job where ${ours}`);
  const end = db.prepare(`update job set status = 'completed', finished_at = ?, session_seq = null, started_at = null,
      timeout_at = null, name_slot = null, key_slot = null, lane_slot = null, progress = null, progress_note = null,
      key_held = case when key_scope = 'window' then key_held else null end
    from ${named} where ${ours}
    returning job.seq, job.run_id, job.lane_seq, job.awaited, job.kind, job.attempt, case when job.limits is not null
      or job.limit_key is not null or job.group_seq is not null then 1 else 0 end as belongs`);
  const gated = db.prepare(`select seq from lane where seq = 1 and (limit_max is not null or exists (
      select 1 from reservation where reservation.lane_seq = lane.seq and reservation.status = 'active')) limit 1`);
  return (now, ended) => {
    const done = JSON.stringify(ended.map(({ seq, run_id }) => [seq, run_id, 0.1, null]));
    listens.get();
    keep.run(now, done);
    end.all(now, done);
    gated.get();
  };
}

function prepareClaim(db: DatabaseSync): BareStatements["claim"] {
  const alive = db.prepare("select seq from session where seq = 1 and status = 'running'");
  const lanes = db.prepare(`with recursive turn (lane_seq, place) as (
      select (select min(lane_seq) from job where status = 'queued' and lane_seq > ?), 1
      union all
      select (select min(job.lane_seq) from job where job.status = 'queued' and job.lane_seq > turn.lane_seq), place + 1
      from turn where turn.lane_seq is not null and place < 20)
    select lane.* from turn join lane on lane.seq = turn.lane_seq`);
  const entered = db.prepare(`select lane.*, (select 1 from reservation where reservation.lane_seq = lane.seq
      and reservation.status = 'active' and reservation.expires_at > ?) as reserved from lane where seq = 1`);
  const paused = db.prepare("select tenant_id, name from paused_name");
  const candidates = db.prepare(`select seq, id, tenant_id, name, params, attempt, attempts, timeout_ms, available_at,
      alone, losses_max, cause_run_id, root_run_id, created_at, tags, limits, limit_key, chain_seq, about, group_seq,
      kind, kind_seq, traceparent
    from job indexed by jobs_to_claim where status = 'queued' and lane_seq = 1
    order by priority desc, position, seq limit ?`);
  const take = db.prepare(`update job set status = 'running', run_id = v.run_id, session_seq = 1, started_at = ?,
      key_held = case when key_scope = 'queued' then null else key_held end
    from ${named} where job.seq = v.seq`);
  return (now, most) => {
    alive.get();
    lanes.all(1);
    lanes.all(0);
    entered.all(now);
    paused.all();
    const rows = candidates.all(most) as unknown as { seq: number; params: string }[];
    const claimed = rows.map(({ seq, params }) => ({ seq, params, run_id: ids() }));
    take.run(now, JSON.stringify(claimed.map(({ seq, run_id }) => [seq, run_id])));
    return claimed;
  };
}
