// explain: why a job has not run, or what became of it. Every sentence is read from the book, none is guessed.
import { formatDuration } from "../../core/duration.ts";
import { DaybookError } from "../../core/error.ts";
import { isoTime } from "../../core/time.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { countRunning, laneRateKey, type LaneRow } from "../claim/lane.ts";
import { servesQueue } from "../host.ts";
import { jobNow, type JobKey, type JobRow, type JobStatus, type WaitsFor } from "../job.ts";
import { limitsOf, mostOf, nameOfKey, readWindow, windowAt, type Limits } from "../claim/limit.ts";
import { kindOf, type Ports } from "../kind.ts";
import { reasonOf } from "../wait/park.ts";

export type Explanation = {
  readonly id: string;
  readonly status: JobStatus;
  /** The obstacle in one word: what it waits for, or the gate it stands at. */
  readonly reason: string;
  /** Whole sentences, the most important first. */
  readonly because: readonly string[];
};

// How an explanation reads the book: rows, or a count of many, which is not made on this thread.
type Look = Pick<Tx, "now" | "all" | "get"> & {
  readonly kinds: Ports["kinds"];
  /** The tenant that asks; null for the owner of the whole book. */
  readonly seenBy: string | null;
  count(statement: Sql): Promise<number>;
};

type Explained = JobRow &
  Omit<LaneRow, "seq"> &
  Record<
    | "session_id"
    | "error_type"
    | "error_message"
    | "host"
    | "run_status"
    | "retried_by"
    | "name_note"
    | "reserved_by"
    | "reserved_note",
    string | null
  > &
  Record<"pid" | "name_paused_at", number | null> & { readonly reserved_until: number };

// A word, and the sentences after it.
type Said = readonly string[];

type Room = { readonly store: Store; readonly kinds: Ports["kinds"] };

export async function explainJob(room: Room, of: JobKey, seenBy: string | null = null): Promise<Explanation> {
  const { store, kinds } = room;
  const { tenant, id } = of;
  const look: Look = {
    kinds,
    now: store.clock.now(),
    seenBy,
    all: (statement) => store.read(statement),
    get: async <R>(statement: Sql) => (await store.read<R>(statement))[0],
    count: async (statement) => (await store.readHeavy<{ n: number }>(statement))[0]?.n ?? 0,
  };
  const job = await look.get<Explained>(sql`select job.*, lane.queue, lane.paused_at, lane.paused_note, lane.limit_max,
      lane.rate_max, lane.rate_ms, session.id as session_id, session.host, session.pid, run.status as run_status,
      run.error_type, run.error_message, child.id as retried_by, paused.paused_at as name_paused_at,
      paused.note as name_note, holder.id as reserved_by, reservation.expires_at as reserved_until,
      reservation.note as reserved_note
    from ${jobNow} join daybook_lane lane on lane.seq = job.lane_seq
    left join daybook_session session on session.seq = job.session_seq
    left join daybook_run run on run.job_seq = job.seq left join daybook_job child on child.retry_of = job.seq
    left join daybook_paused_name paused on paused.tenant_id = job.tenant_id and paused.name = job.name
    left join daybook_reservation reservation on reservation.lane_seq = job.lane_seq
      and reservation.status = 'active' and reservation.expires_at > ${look.now}
    left join daybook_session holder on holder.seq = reservation.session_seq
    where job.tenant_id = ${tenant} and job.id = ${id}`);
  if (job === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  const explain = whyOpen[job.waits_for ?? job.status] ?? explainEnded;
  const [reason = job.status, ...because] = await explain(look, job);
  return { id, status: job.status, reason, because };
}

type Why = (look: Look, job: Explained) => Said | Promise<Said>;

const whyOpen: Partial<Record<WaitsFor | JobStatus, Why>> = {
  async queued(look, job) {
    const ahead = await countAhead(look, job, sql`status = 'queued'`);
    const place = `${ahead} ${ahead === 1 ? "job stands" : "jobs stand"} before it in queue ${job.queue}.`;
    return heldOr(look, job, ["place", place], (session) => [`Session ${session} runs ${job.name}.`]);
  },
  running(look, { started_at: since, session_id, pid, host, ...job }) {
    // The process works for other tenants, too.
    const where = look.seenBy === null ? ` (process ${pid} on ${host})` : "";
    const by = `It runs since ${isoTime(since ?? 0)} in session ${session_id}${where}.`;
    const asked = job.cancel_requested_at === null ? [] : ["It was asked to cancel and has not ended yet."];
    return ["running", by, ...asked];
  },
  async time(look, job) {
    const { rate } = limitsOf(job);
    if (job.waits_key !== null && rate !== undefined) return explainRate(look, job, rate);
    const again = `it is attempt ${job.attempt} of ${job.attempts}, after a backoff`;
    const why = job.retry_of === null ? "it was enqueued for then" : again;
    const at = job.available_at;
    if (at > look.now) return ["time", `${until(look, at)}: ${why}.`];
    const came = `Its time came at ${isoTime(at)} (${formatDuration(look.now - at)} ago): ${why}.`;
    return heldOr(look, job, ["time", came], (session) => [willTakeIt(session, job)]);
  },
  async key(look, job) {
    const { key } = reasonOf("key", job.waits_key ?? "");
    const holders = await look.all<{ id: string }>(sql`select job.id
      from daybook_permit permit join daybook_job job on job.seq = permit.job_seq
      where permit.tenant_id = ${job.tenant_id} and permit.limit_key = ${key} order by permit.number`);
    const most = mostOf(limitsOf(job), key);
    const byKey = `with limit key ${JSON.stringify(key.slice(key.indexOf("\n") + 1))}`;
    const limit = `At most ${most ?? "?"} ${nameOfKey(key) === undefined ? byKey : `of ${job.name}`} may run at the same time`;
    const first = holders.slice(0, 5).map((row) => row.id);
    const who = first.length === 0 ? "" : `: ${first.join(", ")}`;
    if (holders.length >= (most ?? 0)) return ["key", `${limit}, and ${holders.length} do${who}.`];
    // There is room. The settle that made it let the first of each lane in, and they take it when their lane lets them.
    const free = `${limit}; ${holders.length} do${who}, and those that were let in before it have the first choice.`;
    return heldOr(look, job, ["key", free]);
  },
  async host(look, job) {
    const found = await hostOrPause(look, job);
    return typeof found === "string" ? ["host", willTakeIt(found, job)] : found;
  },
  async alone(look, job) {
    const why = "Its process was lost twice while it ran, so it runs alone, once a session has nothing else to run.";
    return heldOr(look, job, ["alone", why], (session) => [`Session ${session} runs ${job.name}.`]);
  },
  async group(look, { group_seq: group, group_slot: slot }) {
    const ahead = await look.get<Ahead & { group_id: string; slot: number }>(sql`select job.id, line.status,
        job_group.id as group_id, line.group_slot as slot
      from daybook_line line join daybook_job job on job.seq = line.seq
      join daybook_job_group job_group on job_group.seq = line.group_seq
      where line.group_seq = ${group} and coalesce(line.waits_for, '') <> 'group' limit 1`);
    if (ahead === undefined) return ["group", "It waits for its group."];
    const its = `It is number ${(slot ?? 0) + 1} of group ${ahead.group_id}, which runs one job after another`;
    return ["group", `${its}; number ${ahead.slot + 1} (job ${ahead.id}) is ${ahead.status}.`];
  },
  async reservation(look, job) {
    const running = await countRunning(look, job.lane_seq);
    const what = running === 0 ? "its caller is about to run it" : `${running} of its queue still run`;
    return ["reservation", `It is direct work and comes next in its queue: ${what}.`];
  },
  async order(look, job) {
    const { behind, instead } = kindOf(look, job).order;
    // What may stand behind a dead letter is ordered by its key, the others by their source.
    const byKey = instead !== null;
    const earlier = byKey
      ? sql`line.order_key = ${`${job.tenant_id}\n${job.limit_key}`} and line.kind_seq < ${job.kind_seq} order by line.kind_seq`
      : sql`line.kind = ${job.kind} and line.kind_seq = ${job.kind_seq} and line.seq < ${job.seq} order by line.seq`;
    const ahead = await look.get<Ahead>(sql`select job.id, line.status
      from daybook_line line join daybook_job job on job.seq = line.seq where ${earlier} limit 1`);
    const first = ahead === undefined ? instead : `job ${ahead.id} is ${ahead.status}`;
    return ["order", first === null ? `${behind}.` : `${behind}: ${first}.`];
  },
  release() {
    const why = "It was open when this book was copied, and the original may have done it since";
    return ["held", `${why}: it waits until somebody releases it ("daybook release") or drops it.`];
  },
};

function explainEnded(_look: Look, { status, finished_at: at, retried_by: next, ...job }: Explained): Said {
  const when = isoTime(at ?? 0);
  const error = job.error_type === null ? "" : `: ${job.error_type}: ${job.error_message ?? ""}`;
  const ran = `Its run ended as ${job.run_status} at ${when}${error}.`;
  const how = job.run_status === null ? `It was ${status} at ${when}, before it ran.` : ran;
  return [status, how, ...(next === null ? [] : [`Job ${next} tries again.`])];
}

function until({ now }: Look, time: number): string {
  return `It waits until ${isoTime(time)} (${formatDuration(Math.max(0, time - now))} from now)`;
}

async function explainRate(look: Look, job: Explained, rate: NonNullable<Limits["rate"]>): Promise<Said> {
  const last = await readWindow(look, { tenant: job.tenant_id, key: rate.key });
  const { window_at: since, used } = windowAt(look.now, rate.ms, last);
  const rule = `at most ${rate.max} of its rate may start per ${formatDuration(rate.ms)}`;
  const which = sql`status = 'waiting' and waits_for = 'time' and waits_key = ${job.waits_key}`;
  const ahead = await countAhead(look, job, which);
  const place = ahead === 0 ? [] : [`Before it in its queue, ${ahead} ${ahead === 1 ? "waits" : "wait"} for the rate.`];
  if (used >= rate.max) return ["rate", `${until(look, since + rate.ms)}: ${rule}, and ${used} did.`, ...place];
  const open = `${rule.replace("at", "At")}; since ${isoTime(since)} ${used} did, and it is let in after those before it.`;
  return heldOr(look, job, ["rate", open, ...place]);
}

type Ahead = { readonly id: string; readonly status: string };

// What keeps every worker from the job, before `because`: a gate of its queue, the pause of its name, or that no session hosts it. When
// nothing does, `because` after its own word, and what `taker` says of the session that will take it.
async function heldOr(
  look: Look,
  job: Explained,
  [word = "", ...because]: Said,
  taker: (session: string) => Said = () => [],
): Promise<Said> {
  const found = (await closedGate(look, job)) ?? (await hostOrPause(look, job));
  return typeof found === "string" ? [word, ...because, ...taker(found)] : [...found, ...because];
}

/** The session that runs the job's name and serves its queue, or why there is none. */
async function hostOrPause(look: Look, job: Explained): Promise<string | Said> {
  const { name, queue, name_paused_at: pausedAt } = job;
  if (pausedAt !== null) return explainPause(`The name ${name}`, pausedAt, job.name_note);
  const host = await look.get<{ id: string; serves: number }>(sql`select session.id,
      case when ${servesQueue(sql`${queue}`)} then 1 else 0 end as serves
    from daybook_session session join daybook_session_host session_host on session_host.session_seq = session.seq
    where session.status = 'running' and session_host.name = ${name}
      and (session.tenant_id is null or session.tenant_id = ${job.tenant_id}) order by serves desc, session.seq desc limit 1`);
  if (host === undefined) return ["host", `No running session hosts ${name}: start a process that lists it in "use".`];
  if (host.serves === 1) return host.id;
  const elsewhere = `No session that hosts ${name} serves queue ${queue}`;
  return ["host", `${elsewhere}: start a worker that does, or one without "queues".`];
}

function willTakeIt(session: string, job: JobRow): string {
  return `Session ${session} runs ${job.name} and will take it at its next claim.`;
}

async function closedGate(look: Look, job: Explained): Promise<Said | undefined> {
  const { queue, paused_at: pausedAt, limit_max: limit, rate_max: most, rate_ms: ms } = job;
  if (pausedAt !== null) return explainPause(`The queue ${queue}`, pausedAt, job.paused_note);
  if (job.reserved_by !== null) {
    const by = `${job.reserved_by}${job.reserved_note === null ? "" : ` (${job.reserved_note})`}`;
    const until = `until ${isoTime(job.reserved_until)}, unless it is renewed or released`;
    return ["reserved", `The queue ${queue} is reserved by session ${by} ${until}.`];
  }
  const running = limit === null ? 0 : await countRunning(look, job.lane_seq);
  if (limit !== null && running >= limit) {
    return ["limit", `The queue ${queue} lets ${limit} jobs run at the same time, and ${running} do.`];
  }
  if (most === null || ms === null) return undefined;
  const window = windowAt(look.now, ms, await readWindow(look, { tenant: job.tenant_id, key: laneRateKey(queue) }));
  const rule = `The queue ${queue} starts at most ${most} jobs per ${formatDuration(ms)}`;
  if (window.used < most) return undefined;
  return ["rate", `${rule}; the next window opens ${isoTime(window.window_at + ms)}.`];
}

function explainPause(what: string, since: number, note: string | null): Said {
  return ["paused", `${what} is paused since ${isoTime(since)}${note === null ? "" : `: ${note}`}.`];
}

/** How many of `which` stand before the job in its queue. */
function countAhead(look: Look, job: JobRow, which: Sql): Promise<number> {
  return look.count(sql`select count(*) as n from daybook_line where ${which} and lane_seq = ${job.lane_seq}
    and (priority > ${job.priority}
      or (priority = ${job.priority} and (position, seq) < (${job.position}, ${job.seq})))`);
}
