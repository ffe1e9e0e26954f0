// What must hold for events, their deliveries and dead letters; doctor asks. The numbers are those of docs/promises.md.
import { limits } from "../core/limits.ts";
import type { Check } from "../storage/checks.ts";
import { sql } from "../storage/sql.ts";
import { anyOf } from "../storage/word.ts";
import { jobNow } from "../jobs/job.ts";
import { latestNow, mendAdvice } from "../jobs/checks.ts";

const report = "report it: an event, its deliveries and its dead letters are written in one transaction";

/** Told from the name of the job, so that the index finds the one listener; a tenant may have thousands. */
const listenerOfJob = sql`substr(job.name, 10)`;

export const eventChecks: readonly Check[] = [
  {
    promise: "E1",
    name: "a delivery that has not ended has its event",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_event event on event.seq = job.kind_seq and event.tenant_id = job.tenant_id
      where line.kind = 'delivery' and event.seq is null`,
    advice: "rows of daybook_event were removed by hand: cancel these jobs, or restore a backup",
  },
  {
    promise: "E1",
    name: "an event that was published to listeners has their deliveries, unless these left by retention",
    find: () => sql`select event.id as finding from daybook_event event where event.deliveries > (
        select count(*) from daybook_job job where job.tenant_id = event.tenant_id and job.kind = 'delivery'
          and job.kind_seq = event.seq and job.retry_of is null)
      and not exists (select 1 from daybook_eviction eviction where eviction.tenant_id = event.tenant_id and eviction.what = 'job'
        and eviction.removed_at >= event.published_at)`,
    advice: report,
  },
  {
    promise: "E1",
    name: "a delivery is not both done and dead",
    find: () => sql`select letter.id as finding from daybook_dead_letter letter join daybook_event event on event.seq = letter.event_seq
      join daybook_listener listener on listener.seq = letter.listener_seq
      join ${jobNow} on job.tenant_id = letter.tenant_id and job.kind = 'delivery' and job.kind_seq = event.seq
        and job.name = 'listener:' || listener.name
      where letter.status = 'dead' and job.status = 'completed'
        and not exists (select 1 from daybook_job child where child.retry_of = job.seq)`,
    advice: report,
  },
  {
    promise: "E2",
    name: "a delivery whose last try failed has its dead letter",
    find: () => sql`select job.id as finding from ${jobNow} join daybook_event event on event.seq = job.kind_seq
      join daybook_listener listener on listener.tenant_id = job.tenant_id and listener.name = ${listenerOfJob}
      where job.kind = 'delivery' and job.status = 'failed'
        and not exists (select 1 from daybook_job child where child.retry_of = job.seq)
        and not exists (select 1 from daybook_dead_letter letter
          where letter.tenant_id = job.tenant_id and letter.event_seq = event.seq
            and letter.listener_seq = listener.seq)`,
    advice: report,
  },
  {
    promise: "E2",
    name: "a dead letter that has not ended keeps its job",
    find: () => sql`select letter.id as finding from daybook_dead_letter letter
      left join daybook_job job on job.tenant_id = letter.tenant_id and job.id = letter.job_id
      left join daybook_job_pin pin on pin.job_seq = job.seq
      where letter.ended_at is null and pin.job_seq is null`,
    advice: "rows of daybook_job were removed by hand: discard these letters, or restore a backup",
  },
  {
    promise: "E5",
    name: "an event is one deeper than the one that caused it, and within the limit",
    find: () => sql`select event.id as finding from daybook_event event left join daybook_event parent
        on parent.tenant_id = event.tenant_id and parent.id = event.parent_event_id
      where (parent.seq is not null and (event.chain_depth <> parent.chain_depth + 1
          or event.root_event_id <> parent.root_event_id))
        or (event.chain_depth > ${limits.chainDepthMax} and event.topic <> 'event.dead_letter')`,
    advice: report,
  },
  {
    promise: "E7",
    name: "of an ordered key only the oldest delivery runs",
    // A rewind does not cancel a delivery that is running; the deliveries that it makes follow that one.
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.kind = 'delivery' and line.order_key is not null
      and line.status = 'running' and (exists (select 1 from daybook_line older join daybook_job made on made.seq = older.seq
          where older.order_key = line.order_key and older.kind_seq < line.kind_seq
          and not (made.origin = 'manual' and made.created_at >= line.started_at))
        or exists (select 1 from daybook_dead_letter letter where letter.ended_at is null and letter.order_key is not null
          and letter.tenant_id = job.tenant_id and letter.order_key = job.limit_key
          and letter.event_seq < job.kind_seq))`,
    advice: report,
  },
  {
    promise: "E7",
    name: "a delivery that waits for its turn has one before it",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      where line.kind = 'delivery' and line.waits_for = 'order'
      and not exists (select 1 from daybook_line older where older.order_key = line.order_key
        and older.kind_seq < line.kind_seq)
      and not exists (select 1 from daybook_dead_letter letter where letter.ended_at is null and letter.order_key is not null
        and letter.tenant_id = job.tenant_id and letter.order_key = job.limit_key
        and letter.event_seq < job.kind_seq)
      and not exists (select 1 from daybook_listener listener where listener.tenant_id = job.tenant_id
        and listener.name = ${listenerOfJob} and listener.state = 'catching_up'
        and listener.heard_seq < job.kind_seq)`,
    advice: "a worker's next sweep lets it go; if it stays, no worker is running",
  },
  {
    promise: "D4",
    name: "no event was published in the future",
    find: (_dialect, now) => sql`select id as finding, seq from daybook_event where published_at > ${latestNow(now)}`,
    advice: mendAdvice,
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_event set published_at = ${tx.now},
          available_at = case when delay_ms is not null then ${tx.now} + delay_ms
            when available_at > published_at then available_at else ${tx.now} end,
          dedupe_until = ${tx.now} + dedupe_until - published_at
        where seq ${anyOf("integer", seqs)} and published_at > ${latestNow(tx.now)}`),
  },
];
