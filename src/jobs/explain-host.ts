// Who would run a job, or what keeps everybody from it.
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { explainGate, noteText } from "./explain-gate.ts";
import type { JobRow } from "./job.ts";
import type { LaneRow } from "./lane.ts";

/** A session that runs the job's name and serves its queue, or an obstacle: a word and a sentence. */
export type Host = { readonly session: string } | { readonly obstacle: string[] };

/** Everything that holds a job in line is an obstacle: the gates of its queue, the pause of its name, a missing host. */
export async function hostOrObstacle(store: Store, job: JobRow): Promise<Host> {
  const [lane] = await store.read<LaneRow>(sql`select * from daybook_lane lane where seq = ${job.lane_seq}`);
  const closed = lane && (await explainGate(store, lane));
  return closed === undefined ? hostOrPause(store, job) : { obstacle: closed };
}

export async function hostOrPause(store: Store, job: JobRow): Promise<Host> {
  const [paused] = await store.read<{ paused_at: number; note: string | null }>(
    sql`select paused_at, note from daybook_paused_name paused_name where tenant_id = ${job.tenant_id} and name = ${job.name}`,
  );
  if (paused !== undefined) {
    const since = `The name ${job.name} is paused since ${isoTime(paused.paused_at)}${noteText(paused.note)}.`;
    return { obstacle: ["paused", since] };
  }
  return hostOf(store, job);
}

export function willTakeIt({ session }: { readonly session: string }, job: JobRow): string {
  return `Session ${session} runs ${job.name} and will take it at its next claim.`;
}

async function hostOf(store: Store, job: JobRow): Promise<Host> {
  const [lane] = await store.read<{ queue: string }>(
    sql`select queue from daybook_lane lane where seq = ${job.lane_seq}`,
  );
  const [host] = await store.read<{ id: string; serves: number }>(
    sql`select session.id, case when session_host.queue is null or session_host.queue = ${lane?.queue ?? ""}
        then 1 else 0 end as serves
      from daybook_session session join daybook_session_host session_host on session_host.session_seq = session.seq
      where session.status = 'running' and session_host.name = ${job.name} order by serves desc, session.seq desc limit 1`,
  );
  if (host?.serves === 1) return { session: host.id };
  const missing =
    host === undefined
      ? `No running session hosts ${job.name}: start a process that lists it in "use".`
      : `No session that hosts ${job.name} serves queue ${lane?.queue}: start a worker that does, or one without "queues".`;
  return { obstacle: ["host", missing] };
}
