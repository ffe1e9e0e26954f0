// Why a job waits for a time: it was asked to, or its rate is used up.
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { hostOrObstacle, willTakeIt } from "./explain-host.ts";
import type { JobRow } from "./job.ts";
import { limitsOf, type Limits } from "./limit.ts";
import { windowAt, type RateWindow } from "./rate.ts";

export async function explainTime(store: Store, job: JobRow): Promise<string[]> {
  const { rate } = limitsOf(job);
  if (job.waits_key !== null && rate !== undefined) return explainRate(store, job, rate);
  const why =
    job.retry_of === null
      ? "it was enqueued for then"
      : `it is attempt ${job.attempt} of ${job.attempts}, after a backoff`;
  const at = job.available_at;
  if (at > store.clock.now()) return ["time", `${until(store, at)}: ${why}.`];
  const ago = formatDuration(store.clock.now() - at);
  const came = `Its time came at ${isoTime(at)} (${ago} ago): ${why}.`;
  const host = await hostOrObstacle(store, job);
  return "obstacle" in host ? [...host.obstacle, came] : ["time", came, willTakeIt(host, job)];
}

function until(store: Store, time: number): string {
  return `It waits until ${isoTime(time)} (${formatDuration(Math.max(0, time - store.clock.now()))} from now)`;
}

async function explainRate(store: Store, job: JobRow, rate: NonNullable<Limits["rate"]>): Promise<string[]> {
  const [last] = await store.read<RateWindow>(sql`select window_at, used, let_in from daybook_rate_window
    where tenant_id = ${job.tenant_id} and rate_key = ${rate.key}`);
  const { window_at: since, used } = windowAt(store.clock.now(), rate.ms, last);
  const rule = `at most ${rate.max} of its rate may start per ${formatDuration(rate.ms)}`;
  const ahead = await countAhead(store, job);
  const place = ahead === 0 ? [] : [`Before it in its queue, ${ahead} ${ahead === 1 ? "waits" : "wait"} for the rate.`];
  if (used >= rate.max) return ["rate", `${until(store, since + rate.ms)}: ${rule}, and ${used} did.`, ...place];
  const open = `${rule.replace("at", "At")}; since ${isoTime(since)} ${used} did, and it is let in after those before it.`;
  const host = await hostOrObstacle(store, job);
  return "obstacle" in host ? [...host.obstacle, open, ...place] : ["rate", open, ...place];
}

// Many may wait, so they are not counted on this thread.
async function countAhead(store: Store, job: JobRow): Promise<number> {
  const [row] = await store.readHeavy<{ n: number }>(
    sql`select count(*) as n from daybook_line where status = 'waiting' and waits_for = 'time' and waits_key = ${job.waits_key}
      and lane_seq = ${job.lane_seq} and (priority > ${job.priority}
        or (priority = ${job.priority} and (position, seq) < (${job.position}, ${job.seq})))`,
  );
  return row?.n ?? 0;
}
