// A lane is a queue of one tenant. Order, pause, limit and rate belong to it. Its row is made by the first job in it
// and never removed, so its number can be kept in memory.
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";

export type LaneRow = {
  seq: number;
  tenant_id: string;
  queue: string;
  paused_at: number | null;
  paused_note: string | null;
  limit_max: number | null;
  rate_max: number | null;
  rate_ms: number | null;
};

// Known lanes of each store. Only committed ones are kept: a lane of a transaction that was undone does not exist.
const known = new WeakMap<Store["ids"], Map<string, number>>();

/** The number of the lane, which is made if it does not exist yet. */
export function laneOf(tx: Tx, tenant: string, queue: string): number | Promise<number> {
  let lanes = known.get(tx.ids);
  if (lanes === undefined) known.set(tx.ids, (lanes = new Map<string, number>()));
  return lanes.get(`${tenant}\n${queue}`) ?? makeLane(tx, tenant, queue, lanes);
}

/** The numbers of the lanes of these queues. They are made in one order: on PostgreSQL two that make several at the same time
 *  would wait for each other. */
export async function lanesOf(tx: Tx, tenant: string, queues: Iterable<string>): Promise<Map<string, number>> {
  const lanes = new Map<string, number>();
  for (const queue of [...new Set(queues)].sort()) lanes.set(queue, await laneOf(tx, tenant, queue));
  return lanes;
}

async function makeLane(tx: Tx, tenant: string, queue: string, lanes: Map<string, number>): Promise<number> {
  await tx.run(sql`insert into lane (tenant_id, queue) values (${tenant}, ${queue}) on conflict do nothing`);
  const row = await findLane(tx, tenant, queue);
  const made = row?.seq ?? 0;
  tx.afterCommit(() => lanes.set(`${tenant}\n${queue}`, made));
  return made;
}

export async function findLane(tx: Tx, tenant: string, queue: string): Promise<LaneRow | undefined> {
  return tx.get<LaneRow>(sql`select * from lane where tenant_id = ${tenant} and queue = ${queue}`);
}

/** Up to `most` lanes that have something in line and are ours to serve, beginning behind the cursor. `last` is where the
 *  next look goes on, also when none of them is; `more` says that there are others; `wentRound`, that the last lane was
 *  passed or reached. */
export async function nextLanes(
  tx: Tx,
  { cursor, queues }: { readonly cursor: number; readonly queues: ReadonlySet<string> | null },
  most: number,
): Promise<{ lanes: LaneRow[]; last: number; more: boolean; wentRound: boolean }> {
  // Those of other queues are passed over here, because a turn for every few of them would keep the worker busy.
  const seen = queues === null ? most : Math.max(most, passedMax);
  const ahead = await lanesInTurn(tx, cursor, seen);
  const around = ahead.length < seen && cursor > 0 ? await lanesInTurn(tx, 0, seen - ahead.length) : [];
  const all = [...ahead, ...around.filter((lane) => lane.seq <= cursor)];
  const ours = queues === null ? all : all.filter((lane) => queues.has(lane.queue));
  const lanes = ours.slice(0, most);
  const cut = ours.length > most;
  const last = (cut ? lanes : all).at(-1)?.seq ?? 0;
  const wentRound = ahead.length < seen && (!cut || last <= cursor);
  return { lanes, last, more: cut || all.length === seen, wentRound };
}

/** So many lanes are looked at for those of one's own queues. */
const passedMax = 500;

/** The next lanes after `cursor` that have something to run, in turn. Each costs one seek in the claim index, however
 *  long the lanes are. */
async function lanesInTurn(tx: Tx, cursor: number, most: number): Promise<LaneRow[]> {
  const lanes = await tx.all<LaneRow>(sql`
    with recursive turn (lane_seq, place) as (
      select (select min(lane_seq) from job where status = 'queued' and lane_seq > ${cursor}), 1
      union all
      select (select min(job.lane_seq) from job where job.status = 'queued' and job.lane_seq > turn.lane_seq), place + 1
      from turn where turn.lane_seq is not null and place < ${most}
    )
    select lane.* from turn join lane on lane.seq = turn.lane_seq`);
  return lanes.sort((a, b) => a.seq - b.seq);
}
