// A rate lets at most `max` jobs start in each window of time. What has started is counted per window in the claim's
// own transaction; a job over the allowance waits for the rate, which lets in as many as it allows when its next window
// opens.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
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

/** How many may start in the rate's current window, and when the next one opens. */
export async function roomInRate(tx: Tx, rule: RateRule): Promise<{ room: number; opensAt: number }> {
  const current = await currentWindow(tx, rule);
  return { room: Math.max(0, rule.max - current.used), opensAt: current.window_at + rule.ms };
}

/** Takes up to `want` starts from the rate's current window, and says when the next one opens. */
export async function takeFromRate(
  tx: Tx,
  rule: RateRule,
  want: number,
): Promise<{ granted: number; opensAt: number }> {
  const current = await currentWindow(tx, rule);
  const granted = Math.max(0, Math.min(want, rule.max - current.used));
  if (granted > 0) {
    await tx.run(sql`insert into daybook_rate_window (tenant_id, rate_key, window_at, used, let_in)
      values (${rule.tenant}, ${rule.key}, ${current.window_at}, ${current.used + granted}, ${current.let_in})
      on conflict (tenant_id, rate_key) do update
        set window_at = excluded.window_at, used = excluded.used, let_in = excluded.let_in`);
  }
  return { granted, opensAt: current.window_at + rule.ms };
}

/** Somebody waits for the rate, and is to be let in then. Every worker must know when: this one may have its hands full. */
export async function openAt(tx: Tx, rule: RateRule, opensAt: number): Promise<void> {
  const changed = await tx.run(sql`update daybook_rate_window set opens_at = ${opensAt}
    where tenant_id = ${rule.tenant} and rate_key = ${rule.key} and opens_at is distinct from ${opensAt}`);
  if (changed > 0) tx.wake(jobsChannel);
}

async function currentWindow(tx: Tx, rule: RateRule): Promise<RateWindow> {
  const row = await readWindow(tx, rule);
  const current = windowAt(tx.now, rule.ms, row);
  // The clock was set. What follows counts from here, also when nothing can start now.
  if (row !== undefined && current.window_at < row.window_at - (row.window_at % rule.ms)) {
    await tx.run(sql`update daybook_rate_window set window_at = ${current.window_at}
      where tenant_id = ${rule.tenant} and rate_key = ${rule.key}`);
  }
  return current;
}

export type RateWindow = { readonly window_at: number; readonly used: number; readonly let_in: number };

/** The window that was last counted in, if anything was. */
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
  return { ...last, window_at: lastAt - at <= ms ? lastAt : at };
}
