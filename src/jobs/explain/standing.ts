// What stands in the lines of a tenant at a glance. It costs the same beside a million jobs: each state is counted in an index of its
// own, and no further than `limits.countedMax`.
import { toCounted, type Counted } from "../../core/count.ts";
import { limits } from "../../core/limits.ts";
import { shape } from "../../storage/shape.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Row, Store } from "../../storage/store.ts";
import { indexedBy, seekEach } from "../../storage/word.ts";
import type { openStatuses } from "../job.ts";

export type Standing = Readonly<Record<(typeof openStatuses)[number], Counted>> & {
  /** Of the jobs that could run by now, the one that has waited longest. What waits for another job, an event or a person, what is
   *  paused and what a copy holds is not due. */
  readonly oldestDue: DueJob | null;
};

export type DueJob = {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly dueAt: number;
  readonly seconds: number;
};

/** What somebody keeps from starting: the first of them, by name. `holds`: whether anything waits for that. */
export type Paused = {
  readonly queues: readonly PausedNow[];
  /** Of jobs; those of listeners begin with `listener:`. */
  readonly names: readonly PausedNow[];
};

export type PausedNow = {
  readonly name: string;
  readonly pausedAt: number;
  readonly note: string | null;
  readonly holds: boolean;
};

type Found = Readonly<Record<(typeof openStatuses)[number], number>> &
  Omit<DueJob, "id" | "seconds"> & { id: string | null };

export async function readStanding(store: Store, tenant: string): Promise<Standing> {
  const now = store.clock.now();
  const [found] = await store.readHeavy<Found>(sql`with
    queued as materialized (${standing(tenant, "queued", "jobs_to_claim")}),
    waiting as materialized (${standing(tenant, "waiting", "jobs_standing_by")}),
    running as materialized (${standing(tenant, "running", "jobs_running")}),
    oldest as (${oldestOf(sql`select seq, available_at from queued where paused_at is null
      union all select seq, available_at from waiting where paused_at is null and available_at <= ${now}
        and (waits_for in ('time', 'key', 'alone') or (waits_for = 'host' and not exists (select 1
          from daybook_paused_name paused where paused.tenant_id = ${tenant} and paused.name = waiting.waits_key)))`)})
    select (select count(*) from queued) as queued, (select count(*) from waiting) as waiting,
      (select count(*) from running) as running, ${ofOldest}`);
  if (found === undefined) throw new Error("a statement of counts has one row");
  const { queued, waiting, running, ...counted } = found;
  const first = queued > limits.countedMax ? sooner(counted, await oldestOfHeads(store, tenant)) : counted;
  const oldestDue: DueJob | null =
    first.id === null ? null : { ...first, id: first.id, seconds: Math.max(0, now - first.dueAt) / 1000 };
  return { waiting: toCounted(waiting), queued: toCounted(queued), running: toCounted(running), oldestDue };
}

type Oldest = Pick<Found, "id" | "name" | "queue" | "dueAt">;

function standing(tenant: string, status: string, index: string): Sql {
  const found = sql`line.status = '${rawSql(status)}' and line.lane_seq = lane.seq`;
  return sql`select line.seq, line.waits_for, line.waits_key, line.available_at, lane.paused_at from daybook_lane lane
    ${seekEach("line", found, indexedBy(index))} where lane.tenant_id = ${tenant} limit ${limits.countedMax + 1}`;
}

function oldestOf(due: Sql): Sql {
  return sql`select due.seq, due.available_at from (${due}) as due order by due.available_at, due.seq limit 1`;
}

const ofOldest = sql`job.id, job.name, lane.queue, oldest.available_at as "dueAt"
  from (select 1 as one) as one left join oldest on true left join daybook_job job on job.seq = oldest.seq
  left join daybook_lane lane on lane.seq = job.lane_seq`;

/** Where more stand in line than are counted: the first of each priority of each queue, found one priority after the other. */
async function oldestOfHeads(store: Store, tenant: string): Promise<Oldest> {
  const inLine = sql`from daybook_line line ${indexedBy("jobs_to_claim")} where line.status = 'queued'`;
  const next = (
    lane: string,
    below: Sql,
  ): Sql => sql`(select line.priority ${inLine} and line.lane_seq = ${rawSql(lane)}
    ${below} order by line.priority desc limit 1)`;
  const [found] = await store.readHeavy<Oldest>(sql`with recursive head(lane_seq, priority) as (
      select lane.seq, ${next("lane.seq", sql``)} from daybook_lane lane
        where lane.tenant_id = ${tenant} and lane.paused_at is null
      union all select head.lane_seq, ${next("head.lane_seq", sql`and line.priority < head.priority`)} from head
        where head.priority is not null),
    first as materialized (select (select line.seq ${inLine} and line.lane_seq = head.lane_seq and line.priority = head.priority
        order by line.position, line.seq limit 1) as seq from head where head.priority is not null),
    oldest as (${oldestOf(sql`select line.seq, line.available_at from first
      ${seekEach("line", sql`line.seq = first.seq`)}`)})
    select ${ofOldest}`);
  return found ?? { id: null, name: "", queue: "", dueAt: 0 };
}

function sooner(one: Oldest, other: Oldest): Oldest {
  if (one.id === null || other.id === null) return one.id === null ? other : one;
  return other.dueAt < one.dueAt ? other : one;
}

export async function readPaused(store: Store, tenant: string): Promise<Paused> {
  const held = sql`line.waits_for = 'host' and line.waits_key = paused.name and line.lane_seq = lane.seq
    and line.status = 'waiting' and line.waits_key is not null`;
  const [queues, names] = await Promise.all([
    store.readHeavy<Row>(sql`select queue as name, paused_at as "pausedAt", paused_note as note,
        case when exists (select 1 from daybook_line line ${indexedBy("jobs_to_claim")} where line.status = 'queued'
          and line.lane_seq = lane.seq) then 1 else 0 end as "holds flag"
      from daybook_lane lane where lane.tenant_id = ${tenant} and paused_at is not null
      order by queue limit ${limits.healthNamesMax}`),
    store.readHeavy<Row>(sql`select name, paused_at as "pausedAt", note, case when exists (select 1 from daybook_lane lane
          ${seekEach("line", held, indexedBy("jobs_waiting"))} where lane.tenant_id = ${tenant}) then 1 else 0 end as "holds flag"
      from daybook_paused_name paused where paused.tenant_id = ${tenant} order by name limit ${limits.healthNamesMax}`),
  ]);
  return { queues: shape(queues), names: shape(names) };
}
