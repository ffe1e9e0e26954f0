// The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request.
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { jobNow } from "../jobs/job.ts";

export const eventViews: readonly View[] = [
  {
    name: "events",
    as: sql`with one as (select * from daybook_event) select
        id, tenant_id as namespace, tenant_id, topic as type, payload, published_at as created_at, priority,
        root_event_id, chain_depth
      from one`,
  },
  // One row for each event and handler that has claimed it: the last delivery of their chain.
  {
    name: "event_claims",
    as: sql`select
        event.id as event_id, substr(job.name, 10) as handler_id, event.tenant_id,
        coalesce(owner.id, ran.id, before_ran.id) as session_id,
        coalesce(job.started_at, run.started_at, before.started_at) as claimed_at,
        coalesce(owner.last_heartbeat_at + 30000, run.ended_at, before.ended_at) as lease_until,
        case job.status when 'completed' then job.finished_at end as ack_at,
        case job.status when 'failed' then job.attempt else job.attempt - 1 end as attempts,
        job.available_at, coalesce(run.error_message, before.error_message) as last_error,
        letter.failed_at as dead_lettered_at
      from ${jobNow} join daybook_event event on event.seq = job.kind_seq
      left join daybook_session owner on owner.seq = job.session_seq
      left join daybook_run run on run.job_seq = job.seq
      left join daybook_session ran on ran.seq = run.session_seq
      left join daybook_job parent on parent.seq = job.retry_of
      left join daybook_run before on before.job_seq = parent.seq
      left join daybook_session before_ran on before_ran.seq = before.session_seq
      left join daybook_listener listener on listener.tenant_id = job.tenant_id and listener.name = substr(job.name, 10)
      left join daybook_dead_letter letter on letter.tenant_id = job.tenant_id and letter.event_seq = event.seq
        and letter.listener_seq = listener.seq and letter.ended_at is null
      where job.kind = 'delivery' and (job.run_id is not null or job.retry_of is not null)
        and not exists (select 1 from daybook_job child where child.retry_of = job.seq)`,
  },
  {
    name: "dead_letters",
    as: sql`select
        letter.seq as id, event.id as event_id, listener.name as handler_id, letter.tenant_id as namespace,
        letter.tenant_id, letter.failed_at, letter.attempts, letter.error_message as last_error,
        event.topic as event_type, event.payload as event_payload, event.root_event_id, event.chain_depth
      from daybook_dead_letter letter join daybook_event event on event.seq = letter.event_seq
      join daybook_listener listener on listener.seq = letter.listener_seq
      where letter.ended_at is null`,
  },
];
