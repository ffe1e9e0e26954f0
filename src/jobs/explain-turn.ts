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
    sql`select job.id, job.status, job_group.id as group_id, job.group_slot as slot
      from job join job_group on job_group.seq = job.group_seq
      where job.group_seq = ${group} and job.finished_at is null and coalesce(job.waits_for, '') <> 'group' limit 1`,
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
    sql`select count(*) as n from job where status = 'running' and lane_seq = ${job.lane_seq}`,
  );
  const running = live?.n ?? 0;
  const what = running === 0 ? "its caller is about to run it" : `${running} of its queue still run`;
  return ["reservation", `It is direct work and comes next in its queue: ${what}.`];
}

async function explainOrder(store: Store, job: JobRow): Promise<string[]> {
  if (job.limit_key !== null) return explainKeyOrder(store, job);
  const [before] = await store.read<{ id: string; status: string }>(
    sql`select id, status from job where tenant_id = ${job.tenant_id} and kind = ${job.kind}
      and kind_seq = ${job.kind_seq} and finished_at is null and seq < ${job.seq} order by seq limit 1`,
  );
  const ahead = before === undefined ? "" : `: job ${before.id} is ${before.status}`;
  return [
    "order",
    `It comes after the one that was made before it, by the order of its ${job.kind ?? "kind"}${ahead}.`,
  ];
}

// The delivery of an event of an ordered key. When no job is before it, what failed for the last time is.
async function explainKeyOrder(store: Store, job: JobRow): Promise<string[]> {
  const [before] = await store.read<{ id: string; status: string }>(
    sql`select id, status from job where kind = 'delivery' and limit_key is not null and finished_at is null
      and tenant_id = ${job.tenant_id} and limit_key = ${job.limit_key} and kind_seq < ${job.kind_seq}
      order by kind_seq limit 1`,
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
      from reservation join session on session.seq = reservation.session_seq
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
