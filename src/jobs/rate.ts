// A rate lets at most `max` jobs start in each window of time. What has started is counted per window in the claim's
// own transaction; a job over the allowance waits for the rate, which lets in as many as it allows when its next window
// opens.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { jobsChannel } from "./job.ts";

export type Rate<Params = unknown> = {
  readonly max: number;
  readonly per: Duration;
  /** Counts each key apart; without it the whole name is one. */
  readonly key?: (params: Params) => string;
};

export function checkRate(rate: Rate<never>): void {
  refuseUnknown(rate, ["max", "per", "key"], "rate");
  checkCount(rate.max, "rate max", 1);
  durationMs(rate.per, "rate per", { min: 1 });
}

export type RateRule = { readonly tenant: string; readonly key: string; readonly max: number; readonly ms: number };

/** How many may start in a rate's current window, and when the next one opens. */
export type RateRoom = { room: number; readonly opensAt: number };

/** The room that a rate has now. Up to `take` starts are taken from it. */
export async function roomInRate(tx: Tx, rule: RateRule, take = 0): Promise<RateRoom> {
  const last = await readWindow(tx, rule);
  const { window_at, used, let_in } = windowAt(tx.now, rule.ms, last);
  const room = Math.max(0, rule.max - used);
  const taken = Math.min(take, room);
  const opensAt = window_at + rule.ms;
  // When the clock was set, what follows counts from here, also when nothing can start now.
  const wasSet = last !== undefined && window_at < last.window_at - (last.window_at % rule.ms);
  if (taken > 0 || wasSet) {
    await tx.run(sql`insert into daybook_rate_window as rate_window (tenant_id, rate_key, window_at, used, let_in)
      values (${rule.tenant}, ${rule.key}, ${window_at}, ${used + taken}, ${let_in})
      on conflict (tenant_id, rate_key) do update
        set window_at = excluded.window_at, used = excluded.used, let_in = excluded.let_in,
          opens_at = case when rate_window.opens_at > ${opensAt} then ${opensAt} else rate_window.opens_at end`);
    if (wasSet) tx.wake(jobsChannel);
  }
  return { room, opensAt };
}

/** Somebody waits for the rate, and is to be let in then. Every worker must know when: this one may have its hands full. */
export async function openAt(tx: Tx, rule: RateRule, opensAt: number): Promise<void> {
  const changed = await tx.run(sql`update daybook_rate_window set opens_at = ${opensAt}
    where tenant_id = ${rule.tenant} and rate_key = ${rule.key} and opens_at is distinct from ${opensAt}`);
  if (changed > 0) tx.wake(jobsChannel);
}

type RateWindow = { readonly window_at: number; readonly used: number; readonly let_in: number };

export async function readWindow(
  tx: Pick<Tx, "get">,
  { tenant, key }: Pick<RateRule, "tenant" | "key">,
): Promise<(RateWindow & { readonly opens_at: number | null }) | undefined> {
  return tx.get(sql`select window_at, used, let_in, opens_at from daybook_rate_window
    where tenant_id = ${tenant} and rate_key = ${key}`);
}

/** The window of a rate at `now`, after the one that was last counted in. */
export function windowAt(now: number, ms: number, last: RateWindow | undefined): RateWindow {
  const at = now - (now % ms);
  const lastAt = last === undefined ? 0 : last.window_at - (last.window_at % ms);
  if (last === undefined || lastAt < at) return { window_at: at, used: 0, let_in: 0 };
  // Clocks of two machines differ a little. The one behind counts in the window that the other has opened: if it went
  // back to its own, the other would find that one old and open the next anew. A larger difference means that the clock
  // was set: it goes on counting in the window it is in now, rather than closing the rate for as long as the step was.
  const isNear = lastAt - at <= ms && lastAt - now <= limits.clockAheadMs;
  return { ...last, window_at: isNear ? lastAt : at };
}
