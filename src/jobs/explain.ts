// explain: why a job has not run, or what became of it. Every sentence is read from the book, none is guessed.
import { DaybookError } from "../core/error.ts";
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { countAhead, heldOr, type Explained, type Look } from "./explain-lane.ts";
import { explainWaiting } from "./explain-wait.ts";
import { jobNow, type JobStatus } from "./job.ts";

export type Explanation = {
  readonly id: string;
  readonly status: JobStatus;
  /** The obstacle in one word: what it waits for, or the gate it stands at. */
  readonly reason: string;
  /** Whole sentences, the most important first. */
  readonly because: readonly string[];
};

export async function explainJob(store: Store, tenant: string, id: string): Promise<Explanation> {
  const look: Look = {
    now: store.clock.now(),
    all: (statement) => store.read(statement),
    get: async <R>(statement: Sql) => (await store.read<R>(statement))[0],
    count: async (statement) => (await store.readHeavy<{ n: number }>(statement))[0]?.n ?? 0,
  };
  const job = await look.get<Explained>(sql`select job.*, lane.queue
    from ${jobNow} join daybook_lane lane on lane.seq = job.lane_seq where job.tenant_id = ${tenant} and job.id = ${id}`);
  if (job === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  const [reason, ...because] = await explain(look, job);
  return { id, status: job.status, reason: reason ?? job.status, because };
}

async function explain(look: Look, job: Explained): Promise<readonly string[]> {
  switch (job.status) {
    case "waiting":
      return explainWaiting(look, job);
    case "queued":
      return explainQueued(look, job);
    case "running":
      return explainRunning(look, job);
    default:
      return explainEnded(look, job);
  }
}

async function explainQueued(look: Look, job: Explained): Promise<string[]> {
  const ahead = await countAhead(look, job, sql`status = 'queued'`);
  const place = `${ahead} ${ahead === 1 ? "job stands" : "jobs stand"} before it in queue ${job.queue}.`;
  return heldOr(look, job, ["place", place], (session) => [`Session ${session} runs ${job.name}.`]);
}

async function explainRunning(look: Look, job: Explained): Promise<string[]> {
  const session = await look.get<{ id: string; host: string; pid: number }>(
    sql`select id, host, pid from daybook_session session where seq = ${job.session_seq}`,
  );
  const since = job.started_at === null ? "" : ` since ${isoTime(job.started_at)}`;
  const by = `It runs${since} in session ${session?.id} (process ${session?.pid} on ${session?.host}).`;
  const asked = job.cancel_requested_at === null ? [] : ["It was asked to cancel and has not ended yet."];
  return ["running", by, ...asked];
}

async function explainEnded(look: Look, job: Explained): Promise<string[]> {
  const run = await look.get<{ status: string; error_type: string | null; error_message: string | null }>(
    sql`select status, error_type, error_message from daybook_run where job_seq = ${job.seq}`,
  );
  const next = await look.get<{ id: string }>(sql`select id from daybook_job where retry_of = ${job.seq}`);
  const when = job.finished_at === null ? "" : ` at ${isoTime(job.finished_at)}`;
  const error = run?.error_type == null ? "" : `: ${run.error_type}: ${run.error_message ?? ""}`;
  const how =
    run === undefined ? `It was ${job.status}${when}, before it ran` : `Its run ended as ${run.status}${when}${error}`;
  return [job.status, `${how}.`, ...(next === undefined ? [] : [`Job ${next.id} tries again.`])];
}
