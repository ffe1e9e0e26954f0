// Why a job waits for its turn: behind others of its group, for a reservation, or for the one its schedule made before.
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import type { JobRow } from "./job.ts";
import type { LaneRow } from "./lane.ts";

export async function explainTurn(store: Store, job: JobRow): Promise<string[]> {
  switch (job.waits_for) {
    case "group":
      return explainGroup(store, job);
    case "reservation":
      return explainDirect(store, job);
    default:
      return explainOrder(store, job);
  }
}

async function explainGroup(store: Store, { group_seq: group, group_slot: slot }: JobRow): Promise<string[]> {
  const [ahead] = await store.read<{ id: string; status: string; group_id: string; slot: number }>(
    sql`select job.id, line.status, job_group.id as group_id, line.group_slot as slot
      from daybook_line line join daybook_job job on job.seq = line.seq
      join daybook_job_group job_group on job_group.seq = line.group_seq
      where line.group_seq = ${group} and coalesce(line.waits_for, '') <> 'group' limit 1`,
  );
  if (ahead === undefined) return ["group", "It waits for its group."];
  return [
    "group",
    `It is number ${(slot ?? 0) + 1} of group ${ahead.group_id}, which runs one job after another; number ` +
      `${ahead.slot + 1} (job ${ahead.id}) is ${ahead.status}.`,
  ];
}

async function explainDirect(store: Store, job: JobRow): Promise<string[]> {
  const [live] = await store.readHeavy<{ n: number }>(
    sql`select count(*) as n from daybook_line where status = 'running' and lane_seq = ${job.lane_seq}`,
  );
  const running = live?.n ?? 0;
  const what = running === 0 ? "its caller is about to run it" : `${running} of its queue still run`;
  return ["reservation", `It is direct work and comes next in its queue: ${what}.`];
}

async function explainOrder(store: Store, job: JobRow): Promise<string[]> {
  if (job.limit_key !== null) return explainKeyOrder(store, job);
  const [before] = await store.read<{ id: string; status: string }>(
    sql`select job.id, line.status from daybook_line line join daybook_job job on job.seq = line.seq
      where line.kind = ${job.kind} and line.kind_seq = ${job.kind_seq} and line.seq < ${job.seq}
      order by line.seq limit 1`,
  );
  if (before === undefined && job.waits_key !== null && job.waits_key === `${job.tenant_id}\n${job.limit_key}`) {
    return ["order", `It waits until its ${job.kind ?? "kind"} lets it go.`];
  }
  const ahead = before === undefined ? "" : `: job ${before.id} is ${before.status}`;
  return [
    "order",
    `It comes after the one that was made before it, by the order of its ${job.kind ?? "kind"}${ahead}.`,
  ];
}

// The delivery of an event of an ordered key. When no job is before it, what failed for the last time is.
async function explainKeyOrder(store: Store, job: JobRow): Promise<string[]> {
  const [before] = await store.read<{ id: string; status: string }>(
    sql`select job.id, line.status from daybook_line line join daybook_job job on job.seq = line.seq
      where line.order_key = ${`${job.tenant_id}\n${job.limit_key}`} and line.kind_seq < ${job.kind_seq}
      order by line.kind_seq limit 1`,
  );
  const ahead =
    before === undefined
      ? "a dead letter stands before it, to be redriven or discarded"
      : `job ${before.id} is ${before.status}`;
  return ["order", `An older event of its key is not finished: ${ahead}.`];
}

/** Somebody holds the next turn of the lane. */
export async function explainReservation(store: Store, lane: LaneRow): Promise<string[] | undefined> {
  const [held] = await store.read<{ id: string; session_id: string; expires_at: number; note: string | null }>(
    sql`select reservation.id, session.id as session_id, reservation.expires_at, reservation.note
      from daybook_reservation reservation join daybook_session session on session.seq = reservation.session_seq
      where reservation.lane_seq = ${lane.seq} and reservation.status = 'active'
        and reservation.expires_at > ${store.clock.now()}`,
  );
  if (held === undefined) return undefined;
  const note = held.note === null ? "" : ` (${held.note})`;
  return [
    "reserved",
    `The queue ${lane.queue} is reserved by session ${held.session_id}${note} until ${isoTime(held.expires_at)}, ` +
      "unless it is renewed or released.",
  ];
}
