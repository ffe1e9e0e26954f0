// Jobs that wait for a rate are let in when its next window opens: in the order of their lane, and no more than the rate
// allows. What waits behind them costs nothing, and the urgent ones come first.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy } from "../storage/word.ts";
import { limitsOf, rateLock, tryLimits, type Limits } from "./limit.ts";
import { release, waitsKey, type Reason } from "./park.ts";
import { windowAt, type RateRule, type RateWindow } from "./rate.ts";

type Rate = { readonly tenant_id: string; readonly rate_key: string };

/** Lets in those whose rate has opened, at most so many rates at a time. */
export async function releaseRates(tx: Tx): Promise<void> {
  const due = await tx.all<Rate>(sql`select tenant_id, rate_key from daybook_rate_window
    where opens_at is not null and opens_at <= ${tx.now} order by opens_at limit ${limits.claimLanesMax}`);
  if (due.length === 0) return;
  // One that another has locked is being let in, or counted, by it.
  const busy = await tryLimits(
    tx,
    due.map((rate) => rateLock(rate.tenant_id, rate.rate_key)),
  );
  for (const rate of due) if (!busy.has(rateLock(rate.tenant_id, rate.rate_key))) await letIn(tx, rate);
}

async function letIn(tx: Tx, { tenant_id: tenant, rate_key: key }: Rate): Promise<void> {
  const last = await tx.get<RateWindow>(sql`select window_at, used, let_in from daybook_rate_window
    where tenant_id = ${tenant} and rate_key = ${key} and opens_at <= ${tx.now}`);
  if (last === undefined) return; // another was faster
  const rule = await ruleOfFirst(tx, tenant, key);
  if (rule === undefined) return setWindow(tx, { tenant, key }, last, null);
  const window = windowAt(tx.now, rule.ms, last);
  const room = rule.max - Math.max(window.used, window.let_in);
  const most = Math.min(room, limits.claimParkedMax);
  if (most > 0) await release(tx, { tenant, waitsFor: "time", key }, most);
  // A large allowance is let in by and by.
  const opensAt = room > most ? tx.now : window.window_at + rule.ms;
  await setWindow(tx, rule, { ...window, let_in: window.let_in + Math.max(0, most) }, opensAt);
}

/** The rule that the first of those who wait for the rate has; undefined when nobody does. */
export async function ruleOfFirst(tx: Tx, tenant: string, key: string): Promise<RateRule | undefined> {
  const { rate } = await limitsOfFirst(tx, { tenant, waitsFor: "time", key });
  return rate && { tenant, ...rate };
}

/** What limits the first of those who wait for a limit or a rate; nothing when nobody does. */
export async function limitsOfFirst(tx: Tx, reason: Reason): Promise<Limits> {
  const first = await tx.get<{ limits: string | null }>(sql`select job.limits
    from daybook_line line ${indexedBy("jobs_waiting")} cross join daybook_job job
    where line.status = 'waiting' and line.waits_for = ${reason.waitsFor} and line.waits_key = ${waitsKey(reason)}
      and line.waits_key is not null and job.seq = line.seq
    order by line.lane_seq, line.priority desc, line.position, line.seq limit 1`);
  return limitsOf(first ?? { limits: null });
}

async function setWindow(
  tx: Tx,
  { tenant, key }: Pick<RateRule, "tenant" | "key">,
  { window_at, used, let_in }: RateWindow,
  opensAt: number | null,
): Promise<void> {
  await tx.run(sql`update daybook_rate_window set window_at = ${window_at}, used = ${used}, let_in = ${let_in},
      opens_at = ${opensAt}
    where tenant_id = ${tenant} and rate_key = ${key}`);
}
