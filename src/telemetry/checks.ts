// What must hold of sessions; doctor asks.
import type { Check } from "../storage/check.ts";
import { sql } from "../storage/sql.ts";

export const telemetryChecks: readonly Check[] = [
  {
    promise: "T2",
    name: "a session has stopped exactly when it is no longer running",
    find: () => sql`select id as finding from session where (status = 'running') <> (stopped_at is null)`,
    advice: "report it: the table's own rules forbid this",
  },
  {
    promise: "T5",
    name: "a session does not stop before it started",
    find: () => sql`select id as finding from session where stopped_at < started_at or last_heartbeat_at < started_at`,
    advice: "the wall clock was moved far back while the session ran; durations of that time are not to be trusted",
  },
];
