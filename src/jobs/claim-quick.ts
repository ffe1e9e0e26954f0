// On PostgreSQL a statement that waits for the answer to the one before costs a round trip, and a claim as claim.ts makes it is
// six of them. Most claims take plain jobs from lanes that the last look found, and need no answer on the way: they are sent
// at once, behind the settle of the same turn. What they cannot decide (limits, orders, gates, hosts, other lanes) is left in
// line for claim.ts, in the same transaction, so the order within a lane is the same.
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { arrayOf } from "../storage/word.ts";
import type { Claimed, ClaimedJob, Claimer } from "./claim.ts";
import { candidateColumns } from "./candidate.ts";
import { enterTogether } from "./gate.ts";
import { lookAhead } from "./lane.ts";
import { tie } from "./state.ts";

export type QuickClaim = {
  readonly jobs: readonly ClaimedJob[];
  /** Something that was not taken stands in line. */
  readonly more: boolean;
};

const nothing: QuickClaim = { jobs: [], more: true };

/** A job at the front of a lane. A lane in which nothing stands gives one row, whose `place` is null. */
type Found = ClaimedJob & {
  readonly lane: number;
  readonly stood: number;
  readonly place: number | null;
  readonly taken: boolean;
};

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
  const left = new Map<number, number>();
  const jobs: ClaimedJob[] = [];
  for (const row of found.sort((a, b) => (a.place ?? 0) - (b.place ?? 0))) {
    if (!left.has(row.lane)) left.set(row.lane, row.stood);
    if (!row.taken) continue;
    left.set(row.lane, (left.get(row.lane) ?? 0) - 1);
    jobs.push(Object.assign(row, { run_id: ids[(row.place ?? 0) - 1] ?? "" }));
  }
  attempted.push(...jobs);
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

// A job is plain when the claim needs no answer to know that it may run: no limit, no order, no key that its start frees, not to
// be run alone, hosted here, its name not paused. The first job of a lane that is not plain ends what is taken from the lane.
// PostgreSQL guesses that a limit it does not know lets a tenth of the table through, and would read whole tables for that; the
// lateral job and the arrays make it look up row by row. Each step is materialized once, because a copy of a hundred jobs costs
// as much as claiming ten of them.
function takePlain(tx: Tx, { sessionSeq, hosts }: Claimer, { ids, want, share }: Wanted): Sql {
  const isSpecial = sql`found.ties & ${tie.limit | tie.order} <> 0 or found.alone > 1
    or found.key_scope is not distinct from 'queued' or found.name <> all(${arrayOf("text", [...hosts])})
    or (found.tenant_id, found.name) in (select paused.tenant_id, paused.name from daybook_paused_name paused)`;
  return sql`with open as materialized (
      select lane.seq, lane.queue
      from unnest(string_to_array(current_setting('daybook.lanes'), ',')::bigint[]) with ordinality as entered(seq, turn)
      join daybook_lane lane on lane.seq = entered.seq
      where lane.paused_at is null and lane.limit_max is null and lane.rate_max is null
        and not exists (select 1 from daybook_reservation reservation where reservation.lane_seq = lane.seq
          and reservation.status = 'active' and reservation.expires_at > ${tx.now})
        and exists (select 1 from daybook_session session where session.seq = ${sessionSeq} and session.status = 'running')
      order by entered.turn),
    found as materialized (
      select ${candidateColumns}, line.ties, open.seq as lane_seq, open.queue, row_number() over () as place
      from open cross join lateral (
        select line.seq, line.ties, line.available_at from daybook_line line
        where line.lane_seq = open.seq and line.status = 'queued'
        order by line.priority desc, line.position, line.seq limit ${share} for no key update skip locked) as line
      cross join lateral (select * from daybook_job job where job.seq = line.seq offset 0) as job),
    front as materialized (
      select found.lane_seq, count(*) as stood, min(found.place) filter (where ${isSpecial}) as stop
      from found group by found.lane_seq),
    plain as materialized (
      select found.seq, found.timeout_ms, found.place from found join front on front.lane_seq = found.lane_seq
      where found.place <= ${want} and (front.stop is null or found.place < front.stop)),
    taken as (update daybook_line as line set status = 'running', run_id = v.run_id, session_seq = ${sessionSeq},
        started_at = ${tx.now}, timeout_at = ${tx.now} + v.timeout_ms
      from unnest(array(select seq from plain), array(select (${arrayOf("text", ids)})[place] from plain),
        array(select timeout_ms from plain)) as v(seq, run_id, timeout_ms)
      where line.seq = v.seq)
    select open.seq as lane, coalesce(front.stood, 0) as stood, found.*,
      coalesce(found.place <= ${want} and (front.stop is null or found.place < front.stop), false) as taken
    from open left join front on front.lane_seq = open.seq left join found on found.lane_seq = open.seq`;
}
