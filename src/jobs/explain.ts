// explain: why a job has not run, or what became of it. Every sentence is read from the book, none is guessed.
import { formatDuration } from "../core/duration.ts";
import { DaybookError } from "../core/error.ts";
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { explainGate, noteText } from "./explain-gate.ts";
import type { JobRow, JobStatus } from "./job.ts";
import type { LaneRow } from "./lane.ts";
import { limitsOf, nameOfKey } from "./limit.ts";

export type Explanation = {
  readonly id: string;
  readonly status: JobStatus;
  /** The obstacle in one word: what it waits for, or the gate it stands at. */
  readonly reason: string;
  /** Whole sentences, the most important first. */
  readonly because: readonly string[];
};

export async function explainJob(store: Store, tenant: string, id: string): Promise<Explanation> {
  const job = await one<JobRow>(store, sql`select * from job where tenant_id = ${tenant} and id = ${id}`);
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
    default:
      return [job.waits_for ?? "waiting", `It waits for its ${job.waits_for ?? "turn"} ${job.waits_key ?? ""}.`];
  }
}

function explainTime(store: Store, job: JobRow): string[] {
  const left = formatDuration(Math.max(0, job.available_at - store.clock.now()));
  const until = `It waits until ${isoTime(job.available_at)} (${left} from now)`;
  const { rate } = limitsOf(job);
  if (job.waits_key !== null && rate !== undefined) {
    return [
      "rate",
      `${until}: at most ${rate.max} of its rate may start per ${formatDuration(rate.ms)}, and ${rate.max} did.`,
    ];
  }
  if (job.retry_of === null) return ["time", `${until}: it was enqueued for then.`];
  return ["time", `${until}: it is attempt ${job.attempt} of ${job.attempts}, after a backoff.`];
}

async function explainKey(store: Store, job: JobRow): Promise<string[]> {
  const key = job.waits_key ?? "";
  const byName = nameOfKey(key) !== undefined;
  const holders = await store.read<{ id: string }>(
    byName
      ? sql`select id from job where tenant_id = ${job.tenant_id} and name = ${job.name} and name_slot is not null`
      : sql`select id from job where tenant_id = ${job.tenant_id} and limit_key = ${key} and key_slot is not null`,
  );
  const rules = limitsOf(job);
  const most = byName ? rules.name : rules.key;
  const of = byName ? `of ${job.name}` : `with limit key ${JSON.stringify(key.slice(key.indexOf("\n") + 1))}`;
  const who =
    holders.length === 0
      ? ""
      : `: ${holders
          .slice(0, 5)
          .map((row) => row.id)
          .join(", ")}`;
  return ["key", `At most ${most ?? "?"} ${of} may run at the same time, and ${holders.length} do${who}.`];
}

async function explainHost(store: Store, job: JobRow): Promise<string[]> {
  const paused = await pausedName(store, job);
  if (paused !== undefined) return paused;
  const host = await hostOf(store, job);
  if ("missing" in host) return ["host", host.missing];
  return ["host", `Session ${host.session} runs ${job.name} and will take it at its next claim.`];
}

async function pausedName(store: Store, job: JobRow): Promise<string[] | undefined> {
  const paused = await one<{ paused_at: number; note: string | null }>(
    store,
    sql`select paused_at, note from paused_name where tenant_id = ${job.tenant_id} and name = ${job.name}`,
  );
  if (paused === undefined) return undefined;
  return ["paused", `The name ${job.name} is paused since ${isoTime(paused.paused_at)}${noteText(paused.note)}.`];
}

async function explainQueued(store: Store, job: JobRow): Promise<string[]> {
  const lane = await one<LaneRow>(store, sql`select * from lane where seq = ${job.lane_seq}`);
  const ahead = await countAhead(store, job);
  const place = `${ahead} ${ahead === 1 ? "job stands" : "jobs stand"} before it in queue ${lane?.queue}.`;
  const closed = (lane && (await explainGate(store, lane))) ?? (await pausedName(store, job));
  if (closed !== undefined) return [...closed, place];
  const host = await hostOf(store, job);
  if ("missing" in host) return ["host", host.missing, place];
  if (job.alone > 0)
    return ["alone", "Its process was lost before, so it runs alone, once a session has nothing else to run.", place];
  return ["place", place, `Session ${host.session} runs ${job.name}.`];
}

async function explainRunning(store: Store, job: JobRow): Promise<string[]> {
  const session = await one<{ id: string; host: string; pid: number }>(
    store,
    sql`select id, host, pid from session where seq = ${job.session_seq}`,
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
    sql`select status, error_type, error_message from run where tenant_id = ${job.tenant_id} and id = ${job.run_id}`,
  );
  const next = await one<{ id: string }>(store, sql`select id from job where retry_of = ${job.seq}`);
  const when = job.finished_at === null ? "" : ` at ${isoTime(job.finished_at)}`;
  const error = run?.error_type == null ? "" : `: ${run.error_type}: ${run.error_message ?? ""}`;
  const how =
    run === undefined ? `It was ${job.status}${when}, before it ran` : `Its run ended as ${run.status}${when}${error}`;
  return [job.status, `${how}.`, ...(next === undefined ? [] : [`Job ${next.id} tries again.`])];
}

// The line may be long, so it is not counted on this thread.
async function countAhead(store: Store, job: JobRow): Promise<number> {
  const [row] = await store.readHeavy<{ n: number }>(
    sql`select count(*) as n from job where status = 'queued' and lane_seq = ${job.lane_seq} and (
      priority > ${job.priority} or (priority = ${job.priority}
        and (position, seq) < (${job.position}, ${job.seq})))`,
  );
  return row?.n ?? 0;
}

/** A session that runs the job's name and serves its queue, or a sentence about what is missing. */
async function hostOf(store: Store, job: JobRow): Promise<{ session: string } | { missing: string }> {
  const [lane] = await store.read<{ queue: string }>(sql`select queue from lane where seq = ${job.lane_seq}`);
  const [host] = await store.read<{ id: string; serves: number }>(
    sql`select session.id, case when session_host.queue is null or session_host.queue = ${lane?.queue ?? ""}
        then 1 else 0 end as serves
      from session join session_host on session_host.session_seq = session.seq
      where session.status = 'running' and session_host.name = ${job.name} order by serves desc, session.seq desc limit 1`,
  );
  if (host === undefined)
    return { missing: `No running session hosts ${job.name}: start a process that lists it in "use".` };
  if (host.serves === 1) return { session: host.id };
  return {
    missing: `No session that hosts ${job.name} serves queue ${lane?.queue}: start a worker that does, or one without "queues".`,
  };
}

async function one<R>(store: Store, statement: Sql): Promise<R | undefined> {
  return (await store.read<R>(statement))[0];
}
