// One thing in a tree of causes, by its own kind of row: how it is read, and where what caused it may be found.
import { limits } from "../core/limits.ts";
import { deliveryName } from "../events/listener.ts";
import { jobNow } from "../jobs/job.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf, indexedBy, seekEach } from "../storage/word.ts";

export type CauseKind = "job" | "delivery" | "event" | "call" | "run" | "schedule" | "commit";

export type CauseNode = {
  /** Of this answer: its kind and its id. */
  readonly key: string;
  /** A delivery is a job that brings an event to a listener; a run is one of a live listener, every other is its job's. */
  readonly kind: CauseKind;
  /** What its own verbs are asked with: an id, the name of a schedule, the number of a commit. */
  readonly id: string;
  readonly name: string;
  /** Of what has one: a job, a call, a run. */
  readonly status: string | null;
  readonly at: number;
  /** Of a job or a delivery that runs or has run, and of a call the newest of its attempts. */
  readonly runId: string | null;
};

export type CauseEdge = {
  /** The keys of two nodes: the cause, and what came of it. */
  readonly from: string;
  readonly to: string;
  /** `caused`: it was made while that ran. */
  readonly kind: "caused" | "delivered" | "heard" | "retried" | "fired" | "replayed" | "resent";
};

/** A node with what leads from it. */
export type Known = CauseNode & {
  readonly seq: number;
  readonly runIds: readonly string[];
  readonly up: readonly Up[];
};

/** Where a cause may be found; the first that still exists is taken. */
type Up = { readonly kind: CauseEdge["kind"]; find(of: Whose): Promise<Known | undefined> };
export type Whose = { readonly store: Store; readonly tenant: string };

/** A job that sends a call is shown as the call. */
export async function ofJob(of: Whose, row: JobRow): Promise<Known> {
  if (row.kind !== "call") return toJob(row);
  return (await callsOf(of, [row])).get(row.kind_seq ?? 0) ?? toJob(row);
}

/** The job that a run was an execution of, or the run itself where a live listener ran. */
export async function nodeOfRun(of: Whose, id: string): Promise<Known | undefined> {
  const { store, tenant } = of;
  const running = sql`line.status = 'running' and line.lane_seq = lane.seq and line.run_id = ${id}`;
  const [found] =
    await store.readHeavy<RunRow>(sql`select run.seq, run.id, run.name, run.registration, run.status, run.started_at, run.job_seq,
      run.cause_run_id, run.event_id
    from daybook_run run where run.tenant_id = ${tenant} and run.id = ${id}
    union all select line.seq, line.run_id, '', null, line.status, line.started_at, line.seq, null, null from daybook_lane lane
      ${seekEach("line", running, indexedBy("jobs_running"))} where lane.tenant_id = ${tenant} limit 1`);
  if (found === undefined) return undefined;
  if (found.job_seq === null) return toRun(found);
  const [job] = await jobsBy(of, sql`seq = ${found.job_seq}`, 1);
  return job === undefined ? undefined : ofJob(of, job);
}

type JobRow = Readonly<Record<"id" | "name" | "status", string>> &
  Readonly<Record<"seq" | "created_at", number>> &
  Readonly<Record<"kind" | "run_id" | "cause_run_id", string | null>> &
  Readonly<Record<"kind_seq" | "retry_of", number | null>>;

// None of these is sorted by the engine: to be spared that, PostgreSQL would walk over everything in its order.
export async function jobsBy({ store, tenant }: Whose, which: Sql, limit: number, by = sql``): Promise<JobRow[]> {
  return store.readHeavy<JobRow>(sql`select job.seq, job.id, job.name, job.status, job.created_at, job.kind, job.kind_seq, job.run_id,
      job.retry_of, job.cause_run_id
    from (select seq from daybook_job ${by} where tenant_id = ${tenant} and ${which} limit ${limit}) as which
    cross join ${jobNow} where job.seq = which.seq`);
}

export function toJob(row: JobRow): Known {
  const { seq, id, name, status, kind, kind_seq: kindSeq, retry_of: before, run_id: runId } = row;
  const isDelivery = kind === "delivery";
  const up: (Up | [])[] = [
    before === null
      ? []
      : { kind: "retried", find: async (book) => firstJob(await jobsBy(book, sql`seq = ${before}`, 1)) },
    isDelivery
      ? { kind: "delivered", find: async (book) => firstEvent(await eventsBy(book, sql`seq = ${kindSeq}`, 1)) }
      : [],
    kind === "schedule" ? { kind: "fired", find: (book) => scheduleBy(book, kindSeq ?? 0) } : [],
    ...causedBy(row.cause_run_id),
  ];
  return {
    ...keyed(isDelivery ? "delivery" : "job", id),
    name: isDelivery ? name.slice(deliveryName("").length) : name,
    status,
    at: row.created_at,
    runId,
    seq,
    runIds: runId === null ? [] : [runId],
    up: up.flat(),
  };
}

function keyed(kind: CauseKind, id: string): Pick<Known, "key" | "kind" | "id"> {
  return { key: `${kind}:${id}`, kind, id };
}

function causedBy(runId: string | null): Up[] {
  return runId === null ? [] : [{ kind: "caused", find: (book) => nodeOfRun(book, runId) }];
}

const firstJob = ([row]: readonly JobRow[]): Known | undefined => row && toJob(row);
const firstEvent = ([row]: readonly EventRow[]): Known | undefined => row && toEvent(row);

type RunRow = Readonly<Record<"id" | "name" | "status", string>> &
  Readonly<Record<"registration" | "cause_run_id" | "event_id", string | null>> & {
    readonly seq: number;
    readonly job_seq: number | null;
    readonly started_at: number;
  };

function toRun({
  seq,
  id,
  name,
  registration,
  status,
  started_at: at,
  cause_run_id: cause,
  event_id: heard,
}: RunRow): Known {
  const event: Up[] =
    heard === null
      ? []
      : [{ kind: "heard", find: async (book) => firstEvent(await eventsBy(book, sql`id = ${heard}`, 1)) }];
  return {
    ...keyed("run", id),
    name: registration ?? name,
    status,
    at,
    runId: id,
    seq,
    runIds: [id],
    up: [...event, ...causedBy(cause)],
  };
}

type EventRow = Readonly<Record<"id" | "topic", string>> &
  Readonly<Record<"seq" | "published_at", number>> &
  Readonly<Record<"cause_run_id" | "parent_event_id" | "replay_of", string | null>>;

export async function eventsBy({ store, tenant }: Whose, which: Sql, limit: number, by = sql``): Promise<EventRow[]> {
  return store.readHeavy<EventRow>(sql`select seq, id, topic, published_at, cause_run_id, parent_event_id, replay_of
    from daybook_event ${by} where tenant_id = ${tenant} and ${which} limit ${limit}`);
}

export function toEvent(row: EventRow): Known {
  const by = (kind: CauseEdge["kind"], id: string | null): Up[] =>
    id === null ? [] : [{ kind, find: async (book) => firstEvent(await eventsBy(book, sql`id = ${id}`, 1)) }];
  return {
    ...keyed("event", row.id),
    name: row.topic,
    status: null,
    at: row.published_at,
    runId: null,
    seq: row.seq,
    runIds: [],
    // Where the run has left, the event that it heard is known all the same.
    up: [...causedBy(row.cause_run_id), ...by("caused", row.parent_event_id), ...by("replayed", row.replay_of)],
  };
}

type CallRow = Readonly<Record<"id" | "name" | "status" | "correlation_id", string>> &
  Readonly<Record<"seq" | "submitted_at", number>> &
  Readonly<Record<"resend_of" | "attempts" | "cause_run_id", string | null>>;

export async function callsOf(book: Whose, jobs: readonly JobRow[]): Promise<Map<number, Known>> {
  const seqs = jobs.flatMap(({ kind, kind_seq: seq }) => (kind === "call" && seq !== null ? [seq] : []));
  if (seqs.length === 0) return new Map();
  return new Map((await callsBy(book, sql`seq ${anyOf("integer", seqs)}`)).map((call) => [call.seq, call]));
}

// An ended call does not name its job, but the runs of its attempts do.
export async function callsBy({ store, tenant }: Whose, which: Sql): Promise<Known[]> {
  const attempts = sql`daybook_call_attempt call_attempt
    where call_attempt.tenant_id = call.tenant_id and call_attempt.call_id = call.id`;
  const rows =
    await store.readHeavy<CallRow>(sql`select call.seq, call.id, call.name, call.status, call.submitted_at, call.resend_of,
      call.correlation_id, (select string_agg(id, '\n' order by number desc) from ${attempts}) as attempts,
      coalesce((select job.cause_run_id from daybook_line line join daybook_job job on job.seq = line.seq
          where line.kind = 'call' and line.kind_seq = call.seq and line.kind is not null limit 1),
        (select job.cause_run_id from daybook_run run join daybook_job job on job.seq = run.job_seq
          where run.id = (select max(id) from ${attempts}))) as cause_run_id
    from daybook_call call where call.tenant_id = ${tenant} and ${which} limit ${limits.causesMax + 1}`);
  return rows.map(toCall);
}

function toCall({ seq, id, name, status, submitted_at: at, attempts, ...row }: CallRow): Known {
  const runIds = attempts === null ? [] : attempts.split("\n");
  const resent: Up[] =
    row.resend_of === null
      ? []
      : [{ kind: "resent", find: async (book) => (await callsBy(book, sql`id = ${row.resend_of}`))[0] }];
  // One that was cancelled before it was sent has no run; what it belongs to is, unless its caller said otherwise, its first cause.
  const cause = row.cause_run_id ?? (row.correlation_id === id ? null : row.correlation_id);
  return {
    ...keyed("call", id),
    name,
    status,
    at,
    runId: runIds[0] ?? null,
    seq,
    runIds,
    up: [...causedBy(cause), ...resent],
  };
}

type CommitRow = { readonly id: number; readonly committed_at: number } & Readonly<
  Record<"actor" | "reason" | "run_id", string | null>
>;

export async function commitsBy({ store, tenant }: Whose, which: Sql, limit: number, by = sql``): Promise<CommitRow[]> {
  return store.readHeavy<CommitRow>(sql`select id, committed_at, actor, reason, run_id from daybook_record_commit ${by}
    where tenant_id = ${tenant} and ${which} limit ${limit}`);
}

export function toCommit({ id, committed_at: at, actor, reason, run_id: runId }: CommitRow): Known {
  const name = reason ?? (actor === null ? `commit ${id}` : `by ${actor}`);
  return { ...keyed("commit", String(id)), name, status: null, at, runId, seq: id, runIds: [], up: causedBy(runId) };
}

async function scheduleBy({ store, tenant }: Whose, seq: number): Promise<Known | undefined> {
  const [row] = await store.readHeavy<{
    name: string;
    created_at: number;
    status: string | null;
  }>(sql`select name, created_at,
      case when removed_at is not null then 'removed' when paused_at is not null then 'paused' end as status
    from daybook_schedule where tenant_id = ${tenant} and seq = ${seq}`);
  if (row === undefined) return undefined;
  const { name, created_at: at, status } = row;
  return { ...keyed("schedule", name), name, status, at, runId: null, seq, runIds: [], up: [] };
}
