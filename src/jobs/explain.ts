// explain: why a job has not run, or what became of it. Every sentence is read from the book, none is guessed.
import { DaybookError } from "../core/error.ts";
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { hostOrObstacle, hostOrPause, willTakeIt } from "./explain-host.ts";
import { explainKey } from "./explain-key.ts";
import { explainTime } from "./explain-time.ts";
import { explainTurn } from "./explain-turn.ts";
import { jobNow, type JobRow, type JobStatus } from "./job.ts";
import type { LaneRow } from "./lane.ts";

export type Explanation = {
  readonly id: string;
  readonly status: JobStatus;
  /** The obstacle in one word: what it waits for, or the gate it stands at. */
  readonly reason: string;
  /** Whole sentences, the most important first. */
  readonly because: readonly string[];
};

export async function explainJob(store: Store, tenant: string, id: string): Promise<Explanation> {
  const job = await one<JobRow>(store, sql`select * from ${jobNow} where job.tenant_id = ${tenant} and job.id = ${id}`);
  if (job === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  const [reason, ...because] = await explain(store, job);
  return { id, status: job.status, reason: reason ?? job.status, because };
}

async function explain(store: Store, job: JobRow): Promise<string[]> {
  switch (job.status) {
    case "waiting":
      return explainWaiting(store, job);
    case "queued":
      return explainQueued(store, job);
    case "running":
      return explainRunning(store, job);
    default:
      return explainEnded(store, job);
  }
}

async function explainWaiting(store: Store, job: JobRow): Promise<string[]> {
  switch (job.waits_for) {
    case "time":
      return explainTime(store, job);
    case "key":
      return explainKey(store, job);
    case "host":
      return explainHost(store, job);
    case "alone":
      return explainAlone(store, job);
    default:
      return explainTurn(store, job);
  }
}

async function explainHost(store: Store, job: JobRow): Promise<string[]> {
  const host = await hostOrPause(store, job);
  return "obstacle" in host ? host.obstacle : ["host", willTakeIt(host, job)];
}

async function explainAlone(store: Store, job: JobRow): Promise<string[]> {
  const host = await hostOrObstacle(store, job);
  const why = "Its process was lost twice while it ran, so it runs alone, once a session has nothing else to run.";
  return "obstacle" in host ? [...host.obstacle, why] : ["alone", why, `Session ${host.session} runs ${job.name}.`];
}

async function explainQueued(store: Store, job: JobRow): Promise<string[]> {
  const lane = await one<LaneRow>(store, sql`select * from daybook_lane lane where seq = ${job.lane_seq}`);
  const ahead = await countAhead(store, job);
  const place = `${ahead} ${ahead === 1 ? "job stands" : "jobs stand"} before it in queue ${lane?.queue}.`;
  const host = await hostOrObstacle(store, job);
  if ("obstacle" in host) return [...host.obstacle, place];
  return ["place", place, `Session ${host.session} runs ${job.name}.`];
}

async function explainRunning(store: Store, job: JobRow): Promise<string[]> {
  const session = await one<{ id: string; host: string; pid: number }>(
    store,
    sql`select id, host, pid from daybook_session session where seq = ${job.session_seq}`,
  );
  const since = job.started_at === null ? "" : ` since ${isoTime(job.started_at)}`;
  const by = `It runs${since} in session ${session?.id} (process ${session?.pid} on ${session?.host}).`;
  return [
    "running",
    by,
    ...(job.cancel_requested_at === null ? [] : ["It was asked to cancel and has not ended yet."]),
  ];
}

async function explainEnded(store: Store, job: JobRow): Promise<string[]> {
  const run = await one<{ status: string; error_type: string | null; error_message: string | null }>(
    store,
    sql`select status, error_type, error_message from daybook_run where job_seq = ${job.seq}`,
  );
  const next = await one<{ id: string }>(store, sql`select id from daybook_job where retry_of = ${job.seq}`);
  const when = job.finished_at === null ? "" : ` at ${isoTime(job.finished_at)}`;
  const error = run?.error_type == null ? "" : `: ${run.error_type}: ${run.error_message ?? ""}`;
  const how =
    run === undefined ? `It was ${job.status}${when}, before it ran` : `Its run ended as ${run.status}${when}${error}`;
  return [job.status, `${how}.`, ...(next === undefined ? [] : [`Job ${next.id} tries again.`])];
}

// The line may be long, so it is not counted on this thread.
async function countAhead(store: Store, job: JobRow): Promise<number> {
  const [row] = await store.readHeavy<{ n: number }>(
    sql`select count(*) as n from daybook_line where status = 'queued' and lane_seq = ${job.lane_seq} and (
      priority > ${job.priority} or (priority = ${job.priority}
        and (position, seq) < (${job.position}, ${job.seq})))`,
  );
  return row?.n ?? 0;
}

async function one<R>(store: Store, statement: Sql): Promise<R | undefined> {
  return (await store.read<R>(statement))[0];
}
