// What happens to a tenant's book as a row of facts that other programs can follow: each is a row that is written once and numbered.
// A reader that knows how far it has read misses nothing, whichever process wrote or told it.
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";

export type FactRow = { readonly seq: number; readonly [column: string]: unknown };

export type FactSource = {
  /** One letter, for the text that says how far a reader has read. */
  readonly letter: string;
  readonly topic: string;
  /** Numbers are given out before the commit on PostgreSQL, so that a lower one may appear later; not where a tenant's own are counted. */
  readonly inOrder: boolean;
  /** The highest number there is, of all tenants or of this one. */
  head(tenant: string): Sql;
  read(tenant: string, after: number, limit: number): Sql;
  /** What is told of a row. */
  tell(row: FactRow): Record<string, unknown>;
};

const at = (value: unknown): string => isoTime(Number(value));

export const factSources: readonly FactSource[] = [
  {
    letter: "j",
    topic: "job.created",
    inOrder: false,
    head: () => sql`select max(seq) as seq from daybook_job`,
    read: (
      tenant,
      after,
      limit,
    ) => sql`select job.seq, job.id, job.name, lane.queue, job.created_at, job.attempt, job.origin
      from daybook_job job join daybook_lane lane on lane.seq = job.lane_seq
      where job.seq > ${after} and job.tenant_id = ${tenant} order by job.seq limit ${limit}`,
    tell: ({ id, name, queue, created_at, attempt, origin }) => ({
      id,
      name,
      queue,
      attempt,
      origin,
      at: at(created_at),
    }),
  },
  {
    letter: "r",
    topic: "run.ended",
    inOrder: false,
    head: () => sql`select max(seq) as seq from daybook_run`,
    read: (
      tenant,
      after,
      limit,
    ) => sql`select run.seq, run.id, run.kind, run.name, job.id as job_id, run.attempt, run.status,
        run.ended_at, run.duration_ms
      from daybook_run run left join daybook_job job on job.seq = run.job_seq
      where run.seq > ${after} and run.tenant_id = ${tenant} order by run.seq limit ${limit}`,
    tell: ({ id, kind, name, job_id: job, attempt, status, ended_at, duration_ms: durationMs }) => ({
      id,
      kind,
      name,
      job,
      attempt,
      status,
      durationMs,
      at: at(ended_at),
    }),
  },
  {
    letter: "e",
    topic: "event.published",
    inOrder: false,
    head: () => sql`select max(seq) as seq from daybook_event`,
    read: (tenant, after, limit) => sql`select seq, id, topic, deliveries, published_at from daybook_event
      where seq > ${after} and tenant_id = ${tenant} order by seq limit ${limit}`,
    tell: ({ id, topic, deliveries, published_at }) => ({ id, topic, deliveries, at: at(published_at) }),
  },
  {
    letter: "d",
    topic: "schedule.decided",
    inOrder: false,
    head: () => sql`select max(seq) as seq from daybook_decision`,
    read: (
      tenant,
      after,
      limit,
    ) => sql`select decision.seq, schedule.name, decision.kind, decision.slot_at, decision.job_id,
        decision.event_id, decision.decided_at
      from daybook_decision decision join daybook_schedule schedule on schedule.seq = decision.schedule_seq
      where decision.seq > ${after} and decision.tenant_id = ${tenant} order by decision.seq limit ${limit}`,
    tell: ({ name, kind, slot_at, job_id: job, event_id: event, decided_at }) => ({
      name,
      kind,
      slot: at(slot_at),
      job,
      event,
      at: at(decided_at),
    }),
  },
  {
    letter: "c",
    topic: "record.committed",
    inOrder: true,
    head: (tenant) => sql`select max(id) as seq from daybook_record_commit where tenant_id = ${tenant}`,
    read: (tenant, after, limit) => sql`select id as seq, committed_at from daybook_record_commit
      where id > ${after} and tenant_id = ${tenant} order by id limit ${limit}`,
    tell: ({ seq, committed_at }) => ({ id: seq, at: at(committed_at) }),
  },
];

export const factTopics = factSources.map(({ topic }) => topic);
