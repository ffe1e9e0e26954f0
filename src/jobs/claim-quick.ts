// On PostgreSQL a statement that waits for the answer to the one before costs a round trip, and a claim as claim.ts makes it is
// six of them. Most claims take plain jobs from lanes that the last look found, and need no answer on the way: they are sent
// at once, behind the settle of the same turn. What they cannot decide (limits, orders, gates, hosts, other lanes) is left in
// line for claim.ts, in the same transaction, so the order within a lane is the same.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { arrayOf } from "../storage/word.ts";
import type { Claimed, ClaimedJob, Claimer } from "./claim.ts";
import { candidateColumns } from "./candidate.ts";
import { enterTogether } from "./enter-lanes.ts";
import { lookAhead } from "./lane.ts";
import { tie } from "./state.ts";

export type QuickClaim = {
  readonly jobs: readonly ClaimedJob[];
  /** Something that was not taken stands in line. */
  readonly more: boolean;
};

const nothing: QuickClaim = { jobs: [], more: true };

/** What was found in a lane, and with `run_id` a job that was taken from it. */
type Found = (ClaimedJob | { readonly run_id: null }) & { readonly lane: number; readonly stood: number };

/** Takes plain jobs of the lanes that are next in turn. Not awaited before the caller's next statement, it costs no round trip
 *  of its own. */
export async function claimQuick(tx: Tx, claimer: Claimer, want: number, attempted: Claimed[]): Promise<QuickClaim> {
  const { turns } = claimer;
  const lanes = turns.next.lanes.slice(0, Math.min(want, limits.claimLanesMax));
  if (tx.dialect === "sqlite" || lanes.length === 0 || claimer.queues !== null) return nothing;
  const share = Math.ceil(want / lanes.length);
  const ids = Array.from({ length: share * lanes.length }, () => tx.ids());
  const [, found, others] = await Promise.all([
    enterTogether(tx, lanes),
    tx.all<Found>(takePlain(tx, claimer, { ids, want, share })),
    lookAhead(tx, turns, lanes, limits.claimLanesMax),
  ]);
  const jobs = found.filter((row) => row.run_id !== null);
  const left = new Map(found.map(({ lane, stood }) => [lane, stood]));
  for (const { seq, run_id, lane } of jobs) {
    attempted.push({ seq, run_id });
    left.set(lane, (left.get(lane) ?? 0) - 1);
  }
  const full = new Set(found.flatMap(({ lane, stood }) => (stood === share ? lane : [])));
  const rest = lanes.filter((lane) => left.get(lane) !== 0 || full.has(lane));
  // A lane that came twice would be claimed from twice.
  const next = [...new Set([...others.filter((lane) => !lanes.includes(lane)), ...rest])];
  const more = next.length > 0 || turns.next.tenants.length > 1;
  // As nextLanes does: with nothing in line, the lanes of before are the best guess.
  turns.next = { ...turns.next, lanes: next.length > 0 ? next : lanes };
  return { jobs, more };
}

type Wanted = { readonly ids: readonly string[]; readonly want: number; readonly share: number };

// A job is plain when nobody has to be asked whether it may run: no limit, no order, no key that its start frees, not to be
// run alone, hosted here, its name not paused. The first of a lane that is not ends what is taken from it. PostgreSQL guesses
// that a limit it does not know lets a tenth of the table through, and would read whole tables for that; the lateral job and the
// arrays make it look up row by row.
function takePlain(tx: Tx, { sessionSeq, hosts }: Claimer, { ids, want, share }: Wanted): ReturnType<typeof sql> {
  return sql`with open as materialized (
      select lane.seq, lane.queue, entered.turn
      from unnest(string_to_array(current_setting('daybook.lanes'), ',')::bigint[]) with ordinality as entered(seq, turn)
      join daybook_lane lane on lane.seq = entered.seq
      where lane.paused_at is null and lane.limit_max is null and lane.rate_max is null
        and not exists (select 1 from daybook_reservation reservation where reservation.lane_seq = lane.seq
          and reservation.status = 'active' and reservation.expires_at > ${tx.now})
        and exists (select 1 from daybook_session session where session.seq = ${sessionSeq} and session.status = 'running')),
    found as materialized (select line.*, open.seq as lane_seq, open.queue,
        count(*) over (partition by open.seq) as stood, row_number() over (order by open.turn, line.priority desc, line.position, line.seq) as place
      from open cross join lateral (
        select line.seq, line.ties, line.available_at, line.priority, line.position from daybook_line line
        where line.lane_seq = open.seq and line.status = 'queued'
        order by line.priority desc, line.position, line.seq limit ${share} for update skip locked) as line),
    judged as materialized (select ${candidateColumns}, line.lane_seq, line.queue, line.place,
        (${arrayOf("text", ids)})[line.place] as run_id,
        line.ties & ${tie.limit | tie.order} <> 0 or job.alone > 1 or job.key_scope is not distinct from 'queued'
          or job.name <> all(${arrayOf("text", [...hosts])})
          or (job.tenant_id, job.name) in (select paused.tenant_id, paused.name from daybook_paused_name paused) as special
      from found line cross join lateral (select * from daybook_job job where job.seq = line.seq offset 0) as job),
    stop as materialized (
      select judged.lane_seq, min(judged.place) as place from judged where judged.special group by judged.lane_seq),
    plain as materialized (select judged.* from judged left join stop on stop.lane_seq = judged.lane_seq
      where judged.place <= ${want} and (stop.place is null or judged.place < stop.place)),
    taken as (update daybook_line as line set status = 'running', run_id = v.run_id, session_seq = ${sessionSeq},
        started_at = ${tx.now}, timeout_at = ${tx.now} + v.timeout_ms
      from unnest(array(select seq from plain), array(select run_id from plain), array(select timeout_ms from plain))
        as v(seq, run_id, timeout_ms)
      where line.seq = v.seq)
    select open.seq as lane, coalesce(found.stood, 0) as stood, plain.*
    from open left join (select distinct lane_seq, stood from found) as found on found.lane_seq = open.seq
      left join plain on plain.lane_seq = open.seq
    order by plain.place`;
}
