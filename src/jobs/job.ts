// A job is something that must happen. It is executed at most once; a retry is a new job that names the old one.
//
//   waiting ──► queued ──► running ──► completed
//      │  ▲        │  │        ├─────► failed ──► (a new job, waiting for its time, if it may be retried)
//      │  └─parked─┘  │        └─────► cancelled
//      └──────────────┴──────────────► cancelled, skipped
//
// `queued` means "may run now": the index that claims read holds nothing else, so what cannot run never stands in
// front of what can. A job *waits* for one reason at a time, and the transaction that removes that reason queues it again:
//
//   time   until `available_at`: delayed or retried              released by the clock
//          or `waits_key` names a rate that is used up           released as its windows open, as many as it allows
//   key    a limit named by `waits_key` is used up               released by the settle that frees a permit
//   host   no worker runs `waits_key`, or that name is paused    released by a worker that runs it, or by resume
//   alone  it was lost twice, and runs alone in its process       released by a worker whose process is empty
//   group, reservation, order                                    released by their own rooms
//   release  it was open when this book was copied               released or dropped by a person (hold.ts)
//
// An open job has a row in the line (migrations.ts); a running one's row is its open run: run id, session and start are on
// it. When the run ends it becomes one row of `run`, which never changes, and the row of the line is gone. The run id is the
// fence: only a caller that knows it may end it. What changes these states is in state.ts, and nowhere else.
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { jobEnds } from "./notice.ts";
import { anyOf, type Nullable, type RowOf } from "../storage/word.ts";

export const openStatuses = ["waiting", "queued", "running"] as const;
export const endedStatuses = jobEnds;
export type FinishedStatus = (typeof endedStatuses)[number];
export type JobStatus = (typeof openStatuses)[number] | FinishedStatus;
export type WaitsFor = "time" | "key" | "host" | "group" | "reservation" | "order" | "alone" | "release";
export type JobOrigin = "enqueued" | "retry" | "manual" | "direct";

export const allHave = {
  seq: "integer",
  tenant_id: "text",
  id: "text",
  lane_seq: "integer",
  name: "text",
  priority: "integer",
  created_at: "integer",
  params: "text",
  attempts: "integer",
  losses_max: "integer",
  timeout_ms: "integer",
  backoff: "text",
} as const;

/** What only some jobs have. Most use none of these, and do not pay for saying so. */
export const someHave = {
  retry_of: "integer",
  /** The first job of the chain; null on that one itself. */
  chain_seq: "integer",
  key: "text",
  idempotency_key: "text",
  /** JSON of `Limits`; null when nothing limits it. */
  limits: "text",
  limit_key: "text",
  tags: "text",
  template_id: "text",
  group_seq: "integer",
  group_slot: "integer",
  /** The room above that made it, and its row there; null for a job of its own. */
  kind: "text",
  kind_seq: "integer",
  /** JSON: what that room tells the handler, or what was heard by the live run that made it. */
  about: "text",
  cause_run_id: "text",
  root_run_id: "text",
  /** Whose it is, for its run: an app's instance and its registration, or a schedule. */
  app: "text",
  instance: "integer",
  registration: "text",
  traceparent: "text",
} as const;

type Always = RowOf<typeof allHave>;

/** What a new job says, and where it begins to stand. */
export type Beginning = Omit<Always, "seq" | "timeout_ms" | "backoff"> &
  Nullable<Pick<Always, "timeout_ms" | "backoff">> & {
    available_at: number;
    status: JobStatus;
    waits_for: WaitsFor | null;
    waits_key: string | null;
  };

/** A job as it is now: what must happen, where it stands while it is open, and how it ended. */
export type JobRow = Beginning &
  Nullable<RowOf<typeof someHave>> & {
    seq: number;
    /** Its place in line; null once it has ended. */
    position: number | null;
    origin: JobOrigin;
    attempt: number;
    losses: number;
    /** How often it was lost among others: 0, 1, or 2 when it must run alone. */
    alone: number;
    key_scope: "queued" | "done" | "window" | null;
    run_id: string | null;
    session_seq: number | null;
    started_at: number | null;
    timeout_at: number | null;
    cancel_requested_at: number | null;
    progress: number | null;
    progress_note: string | null;
    finished_at: number | null;
    /** 1 when a caller waits for the end. */
    awaited: number;
  };

/** What a claim reads of a job. */
export type Candidate = Pick<
  JobRow,
  | ("seq" | "tenant_id" | "id" | "name" | "params" | "created_at" | "available_at" | "attempt" | "attempts" | "alone")
  | ("losses_max" | "timeout_ms" | "chain_seq" | "key_scope" | "limits" | "limit_key" | "tags" | "group_seq" | "kind")
  | ("kind_seq" | "about" | "cause_run_id" | "root_run_id" | "traceparent")
>;

export const candidateColumns = sql`job.seq, job.id, job.tenant_id, job.name, job.params, job.attempt, job.attempts,
  job.timeout_ms, line.available_at, job.alone, job.losses_max, job.cause_run_id, job.root_run_id, job.created_at,
  job.tags, job.limits, job.limit_key, job.key_scope, job.chain_seq, job.about, job.group_seq, job.kind, job.kind_seq,
  job.traceparent`;

/** A candidate with room for what its start will say: to add that to each row would cost more than to read the row. */
export type Startable = Candidate & { readonly lane_seq: number; queue: string; run_id: string };

export const startableColumns = sql`${candidateColumns}, line.lane_seq, '' as queue, '' as run_id`;

/** The status of a job from its row of the line or, once it has ended, from its run. */
export const statusNow = sql`case when line.seq is not null then line.status
  when job.cancelled_at is not null or run.status = 'cancelled' then 'cancelled'
  when run.status = 'success' then 'completed' when run.status = 'skipped' then 'skipped' else 'failed' end`;

/** `from ${jobNow} where job.id = …`: jobs as `JobRow`. For reads by number or id; what looks for open jobs asks the line. */
export const jobNow = sql`daybook_job_now job`;

/** The view behind it, also for readers of the book by SQL. */
export const jobNowView = sql`create view daybook_job_now as select job.seq, job.tenant_id, job.id, job.lane_seq, job.name, ${statusNow} as status,
    line.waits_for, line.waits_key, coalesce(line.priority, job.priority) as priority, line.position, job.created_at,
    coalesce(line.available_at, job.due_at, job.created_at) as available_at, job.params, job.origin, job.attempt, job.attempts, job.losses, job.losses_max, job.backoff,
    job.timeout_ms, job.retry_of, job.alone, job.key, job.key_scope, job.idempotency_key, job.limits, job.limit_key,
    job.tags, job.cause_run_id, job.root_run_id, coalesce(line.run_id, run.id) as run_id, line.session_seq,
    line.started_at, line.timeout_at, line.cancel_requested_at, line.progress, line.progress_note,
    case when line.seq is null then coalesce(run.ended_at, job.cancelled_at) end as finished_at, job.template_id,
    job.group_seq, job.group_slot, job.chain_seq, job.kind, job.kind_seq, job.about, coalesce(line.awaited, 0) as awaited,
    job.app, job.instance, job.registration, job.traceparent
  from daybook_job job left join daybook_line line on line.seq = job.seq
  left join daybook_run run on run.job_seq = job.seq`;

/** The jobs of these numbers, as they are now, in the order of their numbers. */
export async function readJobs(tx: Tx, seqs: readonly number[]): Promise<JobRow[]> {
  if (seqs.length === 0) return [];
  return tx.all<JobRow>(sql`select * from ${jobNow} where job.seq ${anyOf("integer", seqs)} order by job.seq`);
}

export type JobKey = { readonly tenant: string; readonly id: string };

export function seqOf({ tenant, id }: JobKey): Sql {
  return sql`select seq from daybook_job where tenant_id = ${tenant} and id = ${id}`;
}

/** One job as it is now, with the name of its queue. */
export async function findJobRow(tx: Tx, { tenant, id }: JobKey): Promise<QueuedRow | undefined> {
  return tx.get<QueuedRow>(sql`select job.*, (select queue from daybook_lane lane where lane.seq = job.lane_seq) as queue
    from ${jobNow} where job.tenant_id = ${tenant} and job.id = ${id}`);
}

type QueuedRow = JobRow & { readonly queue: string };
/** A job that has a place in line. */
export type Standing = QueuedRow & { readonly position: number };

/** It waits or is queued. */
export function stands(job: QueuedRow | undefined): job is Standing {
  return job?.status === "waiting" || job?.status === "queued";
}

export function seqsOf(rows: readonly { readonly seq: number }[]): number[] {
  return rows.map(({ seq }) => seq);
}

/** The channel that tells workers that there may be something to claim, now or at another time than they know. */
export const jobsChannel = "jobs";
/** The channel that tells them that something was put in line, and nothing else has changed: the path of most jobs. */
export const queuedChannel = "jobs.queued";
/** The channel that tells owners to look for requests to cancel. */
export const cancelChannel = "jobs.cancel";
/** The channel that tells callers that a job or a group they wait for has ended. */
export const doneChannel = "jobs.done";
/** The channel that tells workers that jobs were parked for want of a host, by a worker that is none. */
export const hostChannel = "jobs.host";
