// The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request.
import { sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";

export const telemetryViews: readonly View[] = [
  // PostgreSQL lets a view over one table be written; one with a common table expression it does not.
  {
    name: "sessions",
    as: sql`with one as (select * from daybook_session) select
        id, id as session_id, null as namespace, null as tenant_id, started_at, stopped_at, last_heartbeat_at,
        last_heartbeat_at as last_heartbeat, status, error_type, error_message, error_trace as error_traceback,
        metadata, host, pid
      from one`,
  },
];
