// The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request.
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { jobNow } from "../jobs/job.ts";

export const callViews: readonly View[] = [
  {
    name: "service_calls",
    as: sql`with one as (select * from daybook_call) select
        tenant_id, id as service_call_id, name,
        upper(substr(status, 1, 1)) || substr(status, 2) as status, submitted_at, due_at, started_at, finished_at,
        request as request_spec, outcome as outcome_meta
      from one`,
  },
  {
    name: "service_call_tags",
    as: sql`with one as (select * from daybook_call_tag) select
        tenant_id, call_id as service_call_id, tag
      from one`,
  },
  {
    name: "timer_schedules",
    as: sql`with one as (select * from daybook_call) select
        tenant_id, id as service_call_id, correlation_id, due_at, submitted_at as registered_at,
        started_at as reached_at, case when started_at is null then 'Scheduled' else 'Reached' end as state
      from one`,
  },
  {
    name: "http_execution_log",
    as: sql`with one as (select * from daybook_call_attempt) select
        tenant_id, call_id as service_call_id, id as execution_id, started_at, finished_at, url as request_url,
        method as request_method, request_headers, request_body, cast(response_status as text) as response_status,
        response_headers, response_body, error_message
      from one`,
  },
  // A sink is a listener whose name begins with "sink:"; the last job of a delivery says whether it went out. What somebody
  // passed over or gave up will not go out, and is not there: else it would be published for ever, to who asks for the rest.
  {
    name: "outbox",
    as: sql`select
        event.seq as id, event.tenant_id, coalesce(event.key, event.id) as aggregate_id, event.topic as event_type,
        event.payload as event_payload, event.published_at as created_at,
        case job.status when 'completed' then job.finished_at end as published_at, substr(job.name, 15) as sink
      from ${jobNow} join daybook_event event on event.tenant_id = job.tenant_id and event.seq = job.kind_seq
      left join daybook_job later on later.retry_of = job.seq
      where job.kind = 'delivery' and later.seq is null and substr(job.name, 1, 14) = 'listener:sink:'
        and job.status not in ('cancelled', 'skipped') and not exists (select 1 from daybook_dead_letter letter
          where letter.tenant_id = job.tenant_id and letter.event_seq = event.seq and letter.job_id = job.id
            and letter.status = 'discarded')`,
  },
];
