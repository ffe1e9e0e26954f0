// Pausing and limiting. A lane's pause, limit and rate are gates on the lane; a paused name's jobs are parked as they
// come to the front, and released when it is resumed.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { closeLane, laneLock } from "./gate.ts";
import { hostChannel, jobsChannel } from "./job.ts";
import { laneOf } from "./lane.ts";
import { lockLimits } from "./limit.ts";
import { lanesThatWait, release } from "./park.ts";
import { checkRate } from "./rate.ts";

export async function pauseLane(tx: Tx, queue: string, note: string | null): Promise<void> {
  const lane = await laneOf(tx, tx.tenant, checkName(queue, "queue"));
  await closeLane(tx, lane);
  await tx.run(sql`update daybook_lane as lane set paused_at = coalesce(paused_at, ${tx.now}), paused_note = ${note}
    where seq = ${lane}`);
}

export async function resumeLane(tx: Tx, queue: string): Promise<void> {
  const lane = await laneOf(tx, tx.tenant, checkName(queue, "queue"));
  await tx.run(sql`update daybook_lane as lane set paused_at = null, paused_note = null where seq = ${lane}`);
  tx.wake(jobsChannel);
}

export async function pauseName(tx: Tx, name: string, note: string | null): Promise<void> {
  await tx.run(sql`insert into daybook_paused_name (tenant_id, name, paused_at, note)
    values (${tx.tenant}, ${checkName(name, "job name")}, ${tx.now}, ${note})
    on conflict (tenant_id, name) do update set note = excluded.note`);
}

export async function resumeName(tx: Tx, name: string): Promise<void> {
  await tx.run(sql`delete from daybook_paused_name where tenant_id = ${tx.tenant} and name = ${name}`);
  // The rest follow as claims look for hosted jobs; the wakes make them look.
  const reason = { tenant: tx.tenant, waitsFor: "host", key: name } as const;
  const lanes = await lanesThatWait(tx, reason);
  await release(tx, reason, Math.ceil(limits.bulkRowsMax / Math.max(1, lanes.length)), lanes);
  tx.wake(hostChannel);
  tx.wake(jobsChannel);
}

/** The names that are paused, each after its tenant. */
export async function pausedNames(tx: Tx): Promise<Set<string>> {
  const rows = await tx.all<{ tenant_id: string; name: string }>(sql`select tenant_id, name
    from daybook_paused_name paused_name`);
  return new Set(rows.map((row) => `${row.tenant_id}\n${row.name}`));
}

export type LaneLimits = {
  /** How many of the lane's jobs may run at the same time; null lifts the limit. */
  readonly concurrency?: number | null;
  /** How many may start per window; null lifts the rate. */
  readonly rate?: { readonly max: number; readonly per: Duration } | null;
};

export async function limitLane(tx: Tx, queue: string, to: LaneLimits): Promise<void> {
  refuseUnknown(to, ["concurrency", "rate"], "the limit of a queue");
  if (to.rate != null) checkRate(to.rate);
  const lane = await laneOf(tx, tx.tenant, checkName(queue, "queue"));
  await closeLane(tx, lane);
  await lockLimits(tx, [laneLock({ seq: lane })]);
  if (to.concurrency !== undefined) {
    const most = to.concurrency === null ? null : checkCount(to.concurrency, "concurrency", 1);
    await tx.run(sql`update daybook_lane as lane set limit_max = ${most} where seq = ${lane}`);
  }
  if (to.rate !== undefined) {
    const max = to.rate?.max ?? null;
    const ms = to.rate === null ? null : durationMs(to.rate.per);
    await tx.run(sql`update daybook_lane as lane set rate_max = ${max}, rate_ms = ${ms} where seq = ${lane}`);
  }
  tx.wake(jobsChannel);
}
