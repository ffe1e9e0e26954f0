// Why a job waits: for a time, a limit or a rate, for others of its group, its reservation, or the one made before it.
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import { countAhead, explainHost, heldOr, willTakeIt, type Explained, type Look } from "./explain-lane.ts";
import { countRunning } from "./gate.ts";
import { limitsOf, nameOfKey, type Limits } from "./limit.ts";
import { readWindow, windowAt } from "./rate.ts";

export async function explainWaiting(look: Look, job: Explained): Promise<readonly string[]> {
  switch (job.waits_for) {
    case "time":
      return explainTime(look, job);
    case "key":
      return explainKey(look, job);
    case "host":
      return explainHost(look, job);
    case "alone":
      return explainAlone(look, job);
    case "group":
      return explainGroup(look, job);
    case "reservation":
      return explainDirect(look, job);
    default:
      return explainOrder(look, job);
  }
}

async function explainTime(look: Look, job: Explained): Promise<string[]> {
  const { rate } = limitsOf(job);
  if (job.waits_key !== null && rate !== undefined) return explainRate(look, job, rate);
  const why =
    job.retry_of === null
      ? "it was enqueued for then"
      : `it is attempt ${job.attempt} of ${job.attempts}, after a backoff`;
  const at = job.available_at;
  if (at > look.now) return ["time", `${until(look, at)}: ${why}.`];
  const came = `Its time came at ${isoTime(at)} (${formatDuration(look.now - at)} ago): ${why}.`;
  return heldOr(look, job, ["time", came], (session) => [willTakeIt(session, job)]);
}

function until({ now }: Look, time: number): string {
  return `It waits until ${isoTime(time)} (${formatDuration(Math.max(0, time - now))} from now)`;
}

async function explainRate(look: Look, job: Explained, rate: NonNullable<Limits["rate"]>): Promise<string[]> {
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

async function explainKey(look: Look, job: Explained): Promise<string[]> {
  const key = (job.waits_key ?? "").slice(job.tenant_id.length + 1);
  const byName = nameOfKey(key) !== undefined;
  const holders = await look.all<{ id: string }>(
    sql`select job.id from daybook_permit permit join daybook_job job on job.seq = permit.job_seq
      where permit.tenant_id = ${job.tenant_id} and permit.limit_key = ${key} order by permit.number`,
  );
  const rules = limitsOf(job);
  const most = byName ? rules.name : rules.key;
  const of = byName ? `of ${job.name}` : `with limit key ${JSON.stringify(key.slice(key.indexOf("\n") + 1))}`;
  const first = holders.slice(0, 5).map((row) => row.id);
  const limit = `At most ${most ?? "?"} ${of} may run at the same time`;
  const who = first.length === 0 ? "" : `: ${first.join(", ")}`;
  if (holders.length >= (most ?? 0)) return ["key", `${limit}, and ${holders.length} do${who}.`];
  // There is room. Whoever made it let the first of each lane in, and they take it when their lane lets them.
  const free = `${limit}; ${holders.length} do${who}, and those that were let in before it have the first choice.`;
  return heldOr(look, job, ["key", free]);
}

async function explainAlone(look: Look, job: Explained): Promise<string[]> {
  const why = "Its process was lost twice while it ran, so it runs alone, once a session has nothing else to run.";
  return heldOr(look, job, ["alone", why], (session) => [`Session ${session} runs ${job.name}.`]);
}

async function explainGroup(look: Look, { group_seq: group, group_slot: slot }: Explained): Promise<string[]> {
  const ahead = await look.get<{ id: string; status: string; group_id: string; slot: number }>(
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

async function explainDirect(look: Look, job: Explained): Promise<string[]> {
  const running = await countRunning(look, job.lane_seq);
  const what = running === 0 ? "its caller is about to run it" : `${running} of its queue still run`;
  return ["reservation", `It is direct work and comes next in its queue: ${what}.`];
}

// The next one that its schedule made, or the delivery of an event of an ordered key. When no job is before that, what failed
// for the last time is.
async function explainOrder(look: Look, job: Explained): Promise<string[]> {
  const byKey = job.limit_key !== null;
  const earlier = byKey
    ? sql`line.order_key = ${`${job.tenant_id}\n${job.limit_key}`} and line.kind_seq < ${job.kind_seq} order by line.kind_seq`
    : sql`line.kind = ${job.kind} and line.kind_seq = ${job.kind_seq} and line.seq < ${job.seq} order by line.seq`;
  const before = await look.get<{ id: string; status: string }>(
    sql`select job.id, line.status from daybook_line line join daybook_job job on job.seq = line.seq
      where ${earlier} limit 1`,
  );
  const ahead = before && `job ${before.id} is ${before.status}`;
  if (byKey) {
    const why = ahead ?? "a dead letter stands before it, to be redriven or discarded";
    return ["order", `An older event of its key is not finished: ${why}.`];
  }
  const who = ahead === undefined ? "" : `: ${ahead}`;
  return ["order", `It comes after the one that was made before it, by the order of its ${job.kind ?? "kind"}${who}.`];
}
