// Gives back jobs that were claimed and have not started: they stand where they stood, and it costs them nothing.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, rowSet } from "../storage/word.ts";
import { tellCancelled } from "./cancel.ts";
import type { Claimed } from "./claim.ts";
import { freeSlots } from "./free-slots.ts";
import type { JobHooks } from "./hooks.ts";
import { jobsChannel, type JobRow } from "./job.ts";
import { holdMoved, standApart } from "./line/give-back.ts";
import { lockJobs } from "./lock-order.ts";

export async function unclaim(tx: Tx, hooks: JobHooks, jobs: readonly Claimed[]): Promise<number> {
  if (jobs.length === 0) return 0;
  tx.wake(jobsChannel);
  const moved = await holdMoved(
    tx,
    jobs.map((job) => job.seq),
  );
  // On PostgreSQL the claim whose answer was lost may still be committing: its locks make us wait for what becomes of it,
  // and the statement after that sees it. Whoever ends a group or a reservation has done so before us, or sees us.
  await lockJobs(tx, jobs);
  await endCancelled(tx, hooks, jobs);
  // A key that is taken while its job is queued is taken again, unless somebody else has it by now.
  // One that was to run alone may have been marked as begun by a write whose answer was lost; it has not begun.
  // Direct work has no place in line: it waits for its own turn again.
  const given = await tx.run(sql`update job set status = case origin when 'direct' then 'waiting' else 'queued' end,
      waits_for = case origin when 'direct' then 'reservation' end,
      waits_key = case origin when 'direct' then (${heldFor}) end, run_id = null, session_seq = null, started_at = null,
      timeout_at = null, name_slot = null, key_slot = null, lane_slot = null, cancel_requested_at = null,
      alone = case when alone = 0 then 0 else 1 end,
      key_held = case when key_scope = 'queued' and not exists (select 1 from job other
        where other.tenant_id = job.tenant_id and other.name = job.name and other.key_held = job.key)
        then key else key_held end
    from ${rowSet("v", { seq: "integer", run_id: "text" }, jobs)}
    where job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null`);
  await standApart(tx, moved);
  return given;
}

// The reservation of direct work that is still its session's.
const heldFor = sql`select reservation.id from reservation where reservation.lane_seq = job.lane_seq
  and reservation.status = 'active' and reservation.session_seq = job.session_seq`;

// One that somebody asked to cancel meanwhile never runs, and neither does direct work whose turn is over.
async function endCancelled(tx: Tx, hooks: JobHooks, jobs: readonly Claimed[]): Promise<void> {
  const rows = await tx.all<JobRow>(sql`select job.*
    from ${rowSet("v", { seq: "integer", run_id: "text" }, jobs)} cross join job
    where job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null
      and (job.cancel_requested_at is not null or (job.origin = 'direct' and not exists (${heldFor}))
        or exists (select 1 from job_group where job_group.seq = job.group_seq
          and (job_group.cancel_requested_at is not null
            or (job_group.stopped_at is not null and job_group.on_failure = 'stop'))))`);
  if (rows.length === 0) return;
  await tx.run(sql`update job set status = 'cancelled', finished_at = ${tx.now}, run_id = null, session_seq = null,
      started_at = null, timeout_at = null, name_slot = null, key_slot = null, lane_slot = null,
      key_held = case when key_scope = 'window' then key_held else null end
    where seq ${anyOf(
      "integer",
      rows.map((row) => row.seq),
    )}`);
  await freeSlots(tx, rows);
  for (const row of rows)
    await tellCancelled(tx, hooks, { ...row, status: "cancelled", finished_at: tx.now, run_id: null });
}
