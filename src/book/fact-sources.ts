// What happens to a tenant's book as a row of facts that other programs can follow: each is a row that is written once and numbered.
// A reader that knows how far it has read misses nothing, whichever process wrote or told it.
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import { byNumber } from "../storage/word.ts";

/** `at`: when it was made. */
export type FactRow = { readonly seq: number; readonly at: number; readonly [column: string]: unknown };

/** A row by its number, and by when it was made: on SQLite a number may be given again once the highest rows have left. */
export type Mark = { readonly seq: number; readonly at: number };

export type FactSource = {
  /** One letter, for the text that says how far a reader has read. */
  readonly letter: string;
  readonly topic: string;
  /** What retention calls its rows; null where they stay for ever. */
  readonly evicted: string | null;
  /** Each tenant's own are counted, and appear in the order of their numbers. Others are numbered before their commit on PostgreSQL,
   *  so that a lower one may appear later. */
  readonly inOrder: boolean;
  /** `seq`, `tenant_id` and `at` of the rows, of all tenants unless they are counted for each. */
  marks(tenant: string): Sql;
  read(tenant: string, stretch: Stretch): Sql;
  /** What is told of a row. */
  tell(row: FactRow): Record<string, unknown>;
};

/** One statement reads so many numbers: most of them may be other tenants'. */
export const stretchMax = 10_000;

/** Numbers above the one and up to the other. */
export type Stretch = { readonly after: number; readonly to: number; readonly limit: number };

export const factSources: readonly FactSource[] = [
  {
    letter: "j",
    topic: "job.created",
    evicted: "job",
    inOrder: false,
    marks: () => sql`select seq, tenant_id, created_at as at from daybook_job job ${byNumber}`,
    read: (
      tenant,
      { after, to, limit },
    ) => sql`select job.seq, job.created_at as at, job.id, job.name, lane.queue, job.attempt, job.origin
      from daybook_job job ${byNumber} join daybook_lane lane on lane.seq = job.lane_seq
      where job.seq > ${after} and job.seq <= ${to} and job.tenant_id = ${tenant} order by job.seq limit ${limit}`,
    tell: ({ id, name, queue, attempt, origin, at }) => ({ id, name, queue, attempt, origin, at: isoTime(at) }),
  },
  {
    letter: "r",
    topic: "run.ended",
    evicted: "run",
    inOrder: false,
    marks: () => sql`select seq, tenant_id, ended_at as at from daybook_run run ${byNumber}`,
    read: (
      tenant,
      { after, to, limit },
    ) => sql`select run.seq, run.ended_at as at, run.id, run.kind, run.name, job.id as job_id, run.attempt, run.status,
        run.duration_ms
      from daybook_run run ${byNumber} left join daybook_job job on job.seq = run.job_seq
      where run.seq > ${after} and run.seq <= ${to} and run.tenant_id = ${tenant} order by run.seq limit ${limit}`,
    tell: ({ id, kind, name, job_id: job, attempt, status, duration_ms: durationMs, at }) => ({
      id,
      kind,
      name,
      job,
      attempt,
      status,
      durationMs,
      at: isoTime(at),
    }),
  },
  {
    letter: "e",
    topic: "event.published",
    evicted: "event",
    inOrder: false,
    marks: () => sql`select seq, tenant_id, published_at as at from daybook_event event ${byNumber}`,
    read: (
      tenant,
      { after, to, limit },
    ) => sql`select seq, published_at as at, id, topic, deliveries from daybook_event event ${byNumber}
      where seq > ${after} and seq <= ${to} and tenant_id = ${tenant} order by seq limit ${limit}`,
    tell: ({ id, topic, deliveries, at }) => ({ id, topic, deliveries, at: isoTime(at) }),
  },
  {
    letter: "d",
    topic: "schedule.decided",
    evicted: "decision",
    inOrder: false,
    marks: () => sql`select seq, tenant_id, decided_at as at from daybook_decision decision ${byNumber}`,
    read: (
      tenant,
      { after, to, limit },
    ) => sql`select decision.seq, decision.decided_at as at, schedule.name, decision.kind, decision.slot_at,
        decision.job_id, decision.event_id
      from daybook_decision decision ${byNumber} join daybook_schedule schedule on schedule.seq = decision.schedule_seq
      where decision.seq > ${after} and decision.seq <= ${to} and decision.tenant_id = ${tenant}
      order by decision.seq limit ${limit}`,
    tell: ({ name, kind, slot_at: slot, job_id: job, event_id: event, at }) => ({
      name,
      kind,
      slot: isoTime(Number(slot)),
      job,
      event,
      at: isoTime(at),
    }),
  },
  {
    letter: "c",
    topic: "record.committed",
    evicted: null,
    inOrder: true,
    marks: (tenant) => sql`select id as seq, tenant_id, committed_at as at from daybook_record_commit
      where tenant_id = ${tenant}`,
    read: (tenant, { after, to, limit }) => sql`select id as seq, committed_at as at from daybook_record_commit
      where id > ${after} and id <= ${to} and tenant_id = ${tenant} order by id limit ${limit}`,
    tell: ({ seq, at }) => ({ id: seq, at: isoTime(at) }),
  },
];

export const factTopics = factSources.map(({ topic }) => topic);

/** The rows with a number from this one on. */
export function marksFrom({ marks }: FactSource, tenant: string, from: number): Sql {
  return sql`select seq, at from (${marks(tenant)}) as mark where seq >= ${from} order by seq limit 1`;
}

/** The row with the highest number up to this one. */
export function markUpTo({ marks }: FactSource, tenant: string, to: number): Sql {
  return sql`select seq, at from (${marks(tenant)}) as mark where seq <= ${to} order by seq desc limit 1`;
}

/** The numbers of a tenant's rows. */
export function numbersIn({ marks }: FactSource, tenant: string, { after, to, limit }: Stretch): Sql {
  return sql`select seq from (${marks(tenant)}) as mark where seq > ${after} and seq <= ${to} and tenant_id = ${tenant}
    order by seq limit ${limit}`;
}

export function countIn({ marks }: FactSource, tenant: string, { after, to }: Omit<Stretch, "limit">): Sql {
  return sql`select count(*) as count from (${marks(tenant)}) as mark
    where seq > ${after} and seq <= ${to} and tenant_id = ${tenant}`;
}
