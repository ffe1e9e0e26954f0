// A job is something that must happen. It is executed at most once; a retry is a new job that names the old one.
//
//   waiting ──► queued ──► running ──► completed
//      │  ▲        │  │        ├─────► failed ──► (a new job, waiting for its time, if it may be retried)
//      │  └─parked─┘  │        └─────► cancelled
//      └──────────────┴──────────────► cancelled, skipped
//
// `queued` means "may run now": the index that claims read holds nothing else, so what cannot run never stands in
// front of what can. A job *waits* for one reason at a time, and whoever removes that reason queues it again:
//
//   time   until `available_at`: delayed or retried              released by the clock
//          or `waits_key` names a rate that is used up           released as its windows open, as many as it allows
//   key    a limit named by `waits_key` is used up               released by whoever frees a slot
//   host   nobody here runs `waits_key`, or that name is paused  released by a worker that runs it, or by resume
//   group, reservation, order                                    released by their own rooms
//
// A running job's row is its open run: run id, session and start are on it. When the run ends it becomes one row of
// `run`, which never changes. The run id is the fence: only who knows it may end it.
import { sql } from "../storage/sql.ts";
import type { Heard } from "../telemetry/cause.ts";

export type JobStatus = "waiting" | "queued" | "running" | "completed" | "failed" | "cancelled" | "skipped";
export type WaitsFor = "time" | "key" | "host" | "group" | "reservation" | "order";
export type JobOrigin = "enqueued" | "retry" | "manual" | "direct";

/** What was heard by the live run that made a job, or made the job that made it. */
export function heardOf({ about }: Pick<JobRow, "about">): Heard {
  return about === null ? {} : ((JSON.parse(about) as { heard?: Heard }).heard ?? {});
}

export type JobRow = {
  seq: number;
  tenant_id: string;
  id: string;
  lane_seq: number;
  name: string;
  status: JobStatus;
  waits_for: WaitsFor | null;
  waits_key: string | null;
  priority: number;
  position: number;
  created_at: number;
  available_at: number;
  params: string;
  origin: JobOrigin;
  attempt: number;
  attempts: number;
  losses: number;
  losses_max: number;
  backoff: string | null;
  timeout_ms: number | null;
  retry_of: number | null;
  alone: number;
  key: string | null;
  key_held: string | null;
  key_scope: "queued" | "done" | "window" | null;
  key_until: number | null;
  idempotency_key: string | null;
  /** JSON of `Limits`; null when nothing limits it. */
  limits: string | null;
  limit_key: string | null;
  tags: string | null;
  cause_run_id: string | null;
  root_run_id: string | null;
  run_id: string | null;
  session_seq: number | null;
  started_at: number | null;
  timeout_at: number | null;
  name_slot: number | null;
  key_slot: number | null;
  lane_slot: number | null;
  cancel_requested_at: number | null;
  progress: number | null;
  progress_note: string | null;
  finished_at: number | null;
  template_id: string | null;
  group_seq: number | null;
  group_slot: number | null;
  /** The first job of the chain; null on that one itself. */
  chain_seq: number | null;
  /** The room above that made it, and its row there; null for a job of its own. */
  kind: string | null;
  kind_seq: number | null;
  /** JSON: what that room tells the handler, or what was heard by the live run that made it. */
  about: string | null;
  /** 1 when somebody waits for the end. */
  awaited: number;
  /** 1 while a room above needs the finished job, which is then not pruned. */
  pinned: number;
  /** Whose it is, for its run: an app's instance and its registration, or a schedule. */
  app: string | null;
  instance: number | null;
  registration: string | null;
  traceparent: string | null;
};

/** All columns of a job, by name: of a star SQLite cannot make rows as quickly (decision 017). */
export const jobColumns = sql`seq, tenant_id, id, lane_seq, name, status, waits_for, waits_key, priority, position, created_at,
  available_at, params, origin, attempt, attempts, losses, losses_max, backoff, timeout_ms, retry_of, alone,
  key, key_held, key_scope, key_until, idempotency_key, limits, limit_key, tags, cause_run_id, root_run_id,
  run_id, session_seq, started_at, timeout_at, name_slot, key_slot, lane_slot, cancel_requested_at, progress,
  progress_note, finished_at, template_id, group_seq, group_slot, chain_seq, kind, kind_seq, about, awaited,
  pinned, app, instance, registration, traceparent`;

/** The channel that tells workers that there may be something to claim, now or at another time than they know. */
export const jobsChannel = "jobs";
/** The channel that tells them that something was put in line, and nothing else has changed: the path of most jobs. */
export const queuedChannel = "jobs.queued";
/** The channel that tells owners to look for requests to cancel. */
export const cancelChannel = "jobs.cancel";
/** The channel that tells those who wait that a job or a group they wait for has ended. */
export const doneChannel = "jobs.done";
/** The channel that tells workers that jobs were parked for want of a host, by one who is none. */
export const hostChannel = "jobs.host";
