// What keeps everybody from a job: the gates of its queue, the pause of its name, or that nobody hosts it.
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { countRunning, laneRateKey } from "./gate.ts";
import type { JobRow } from "./job.ts";
import type { LaneRow } from "./lane.ts";
import { readWindow, windowAt } from "./rate.ts";

/** How an explanation reads the book: rows, or a count of many, which is not made on this thread. */
export type Look = Pick<Tx, "now" | "all" | "get"> & { count(statement: Sql): Promise<number> };

export type Explained = JobRow & { readonly queue: string };

/** A session that runs the job's name and serves its queue, or an obstacle: a word and a sentence. */
type Host = { readonly session: string } | { readonly obstacle: readonly string[] };

/** The obstacle before `because`; when there is none, `because` after its own word, and what `taker` says of the session that
 *  will take the job. */
export async function heldOr(
  look: Look,
  job: Explained,
  [word = "", ...because]: readonly string[],
  taker: (session: string) => readonly string[] = () => [],
): Promise<string[]> {
  const lane = await look.get<LaneRow>(sql`select * from daybook_lane lane where seq = ${job.lane_seq}`);
  const closed = lane && (await explainGate(look, lane));
  const host = closed === undefined ? await hostOrPause(look, job) : { obstacle: closed };
  if ("obstacle" in host) return [...host.obstacle, ...because];
  return [word, ...because, ...taker(host.session)];
}

export async function explainHost(look: Look, job: Explained): Promise<readonly string[]> {
  const host = await hostOrPause(look, job);
  return "obstacle" in host ? host.obstacle : ["host", willTakeIt(host.session, job)];
}

export function willTakeIt(session: string, job: JobRow): string {
  return `Session ${session} runs ${job.name} and will take it at its next claim.`;
}

async function hostOrPause(look: Look, job: Explained): Promise<Host> {
  const paused = await look.get<{ paused_at: number; note: string | null }>(
    sql`select paused_at, note from daybook_paused_name paused_name where tenant_id = ${job.tenant_id} and name = ${job.name}`,
  );
  if (paused !== undefined) return { obstacle: explainPause(`The name ${job.name}`, paused.paused_at, paused.note) };
  const host = await look.get<{ id: string; serves: number }>(
    sql`select session.id, case when session_host.queue is null or session_host.queue = ${job.queue}
        then 1 else 0 end as serves
      from daybook_session session join daybook_session_host session_host on session_host.session_seq = session.seq
      where session.status = 'running' and session_host.name = ${job.name} order by serves desc, session.seq desc limit 1`,
  );
  if (host?.serves === 1) return { session: host.id };
  const missing =
    host === undefined
      ? `No running session hosts ${job.name}: start a process that lists it in "use".`
      : `No session that hosts ${job.name} serves queue ${job.queue}: start a worker that does, or one without "queues".`;
  return { obstacle: ["host", missing] };
}

/** The gate in one word and a sentence about it; undefined when the lane is open. */
async function explainGate(look: Look, lane: LaneRow): Promise<string[] | undefined> {
  const { queue, paused_at: pausedAt } = lane;
  if (pausedAt !== null) return explainPause(`The queue ${queue}`, pausedAt, lane.paused_note);
  return (await explainReservation(look, lane)) ?? (await explainLimit(look, lane)) ?? (await explainRate(look, lane));
}

function explainPause(what: string, since: number, note: string | null): string[] {
  return ["paused", `${what} is paused since ${isoTime(since)}${note === null ? "" : `: ${note}`}.`];
}

async function explainReservation(look: Look, lane: LaneRow): Promise<string[] | undefined> {
  const held = await look.get<{ session_id: string; expires_at: number; note: string | null }>(
    sql`select session.id as session_id, reservation.expires_at, reservation.note
      from daybook_reservation reservation join daybook_session session on session.seq = reservation.session_seq
      where reservation.lane_seq = ${lane.seq} and reservation.status = 'active' and reservation.expires_at > ${look.now}`,
  );
  if (held === undefined) return undefined;
  const note = held.note === null ? "" : ` (${held.note})`;
  return [
    "reserved",
    `The queue ${lane.queue} is reserved by session ${held.session_id}${note} until ${isoTime(held.expires_at)}, ` +
      "unless it is renewed or released.",
  ];
}

async function explainLimit(look: Look, { seq, queue, limit_max: most }: LaneRow): Promise<string[] | undefined> {
  if (most === null) return undefined;
  const running = await countRunning(look, seq);
  if (running < most) return undefined;
  return ["limit", `The queue ${queue} lets ${most} jobs run at the same time, and ${running} do.`];
}

async function explainRate(look: Look, lane: LaneRow): Promise<string[] | undefined> {
  const { tenant_id: tenant, queue, rate_max: most, rate_ms: ms } = lane;
  if (most === null || ms === null) return undefined;
  const window = windowAt(look.now, ms, await readWindow(look, { tenant, key: laneRateKey(queue) }));
  if (window.used < most) return undefined;
  const opens = isoTime(window.window_at + ms);
  return [
    "rate",
    `The queue ${queue} starts at most ${most} jobs per ${formatDuration(ms)}; the next window opens ${opens}.`,
  ];
}

/** How many of `which` stand before the job in its queue. */
export function countAhead(look: Look, job: JobRow, which: Sql): Promise<number> {
  return look.count(sql`select count(*) as n from daybook_line where ${which} and lane_seq = ${job.lane_seq}
    and (priority > ${job.priority}
      or (priority = ${job.priority} and (position, seq) < (${job.position}, ${job.seq})))`);
}
