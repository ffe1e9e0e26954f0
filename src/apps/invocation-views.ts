// The seed's names for what the registrations of apps did: runs, beside the registration that they belong to. Identity is by
// name, so a run finds its listener or schedule also after a restart, and shows null for one that belongs to no app.
import { rawSql, sql, type Sql } from "../storage/sql.ts";

export const invocationViews: readonly Sql[] = [
  sql`create view handler_invocations as select ${columns("listener_id")}
    from ${runsOf("listener")} where run.kind in ('listener', 'delivery')`,
  sql`create view job_executions as select ${columns("job_id")}
    from ${runsOf("schedule")} where run.kind = 'schedule'`,
];

// The seed knows three ends: what timed out or was lost is an error, and what was skipped did not take place.
function columns(parent: "listener_id" | "job_id"): Sql {
  return sql`run.id, run.tenant_id, registration.id as ${rawSql(parent)}, session.id as session_id,
    run.started_at as execution_start_dtme, run.started_at as execution_start_ts, run.duration_ms,
    case when run.status in ('timed_out', 'lost') then 'error' when run.status = 'skipped' then 'cancelled'
      else run.status end as status,
    run.error_type, run.error_message, run.error_trace as error_traceback`;
}

function runsOf(kind: "listener" | "schedule"): Sql {
  return sql`run left join session on session.seq = run.session_seq
    left join registration on registration.tenant_id = run.tenant_id and registration.app_key = run.app
      and registration.instance_index = run.instance and registration.name = run.registration
      and registration.kind = ${rawSql(`'${kind}'`)}`;
}
