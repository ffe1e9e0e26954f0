// Limits are counted from live claims, in the transaction of the claim: read the candidates, lock the limits they
// name, count what is running, then take. A running job holds a numbered permit of each of its limits, and the primary key
// of permits makes a breach impossible even if this file were wrong. Jobs without limits pay nothing.
//
// A rate lets at most `max` jobs start in each window of time, counted in the same transaction; a job over the allowance waits for
// the rate, which lets in as many as it allows when its next window opens.
import { remember } from "../../core/remember.ts";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { eachRow, indexedBy } from "../../storage/word.ts";
import type { Reason } from "../wait/park.ts";
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { jobsChannel } from "../job.ts";

/** What limits a job, as its row keeps it: how many of its name, how many of its `limit_key`, how many starts. */
export type Limits = {
  readonly name?: number;
  readonly key?: number;
  readonly rate?: { readonly key: string; readonly max: number; readonly ms: number };
};

export type Limited = {
  readonly tenant_id: string;
  readonly name: string;
  readonly limits: string | null;
  readonly limit_key: string | null;
};

const unlimited: Limits = {};
// A definition gives all its jobs the same limits, and they are asked for several times on a job's way.
const read = remember((limits: string) => JSON.parse(limits) as Limits);

export function limitsOf({ limits }: Pick<Limited, "limits">): Limits {
  return limits === null ? unlimited : read(limits);
}

export type Permit = {
  readonly tenant_id: string;
  readonly limit_key: string;
  readonly number: number;
  readonly job_seq: number;
};

export type Refused = { readonly waitsFor: "key" | "time"; readonly key: string; readonly until: number };

/** The key that a job parked by its name's limit waits for. The keys of limits begin with a name, this one cannot. */
export function nameKey(name: string): string {
  return `\n${name}`;
}

/** The name whose limit a key stands for; undefined when it is the key of a limit per key. */
export function nameOfKey(key: string): string | undefined {
  return key.startsWith("\n") ? key.slice(1) : undefined;
}

/** The keys that jobs wait for when a limit of `job` is used up. */
export function limitKeysOf(job: Limited): string[] {
  if (job.limits === null) return [];
  const byName = limitsOf(job).name === undefined ? [] : [nameKey(job.name)];
  return job.limit_key === null ? byName : [...byName, job.limit_key];
}

/** How many may run by the limit of one of these keys. */
export function mostOf({ name, key }: Limits, limitKey: string): number | undefined {
  return nameOfKey(limitKey) === undefined ? key : name;
}

/** What others wait for while the job has its permits. */
export function permitsOf(job: Limited): Reason[] {
  return limitKeysOf(job).map((key) => ({ tenant: job.tenant_id, waitsFor: "key", key }));
}

/** The same, and the rate that allows the job to start. */
export function reasonsOf(job: Limited): Reason[] {
  const { rate } = limitsOf(job);
  if (rate === undefined) return permitsOf(job);
  return [...permitsOf(job), { tenant: job.tenant_id, waitsFor: "time", key: rate.key }];
}

export function limitNames(jobs: readonly Limited[]): string[] {
  return jobs.flatMap((job) => (job.limits === null ? [] : reasonsOf(job).map(lockOf)));
}

export function lockOf({ waitsFor, tenant, key }: Reason): string {
  return waitsFor === "time" ? `${tenant}\nrate\n${key}` : `${tenant}\n${key}`;
}

/** How many permits of a limit are taken. Direct work that waits for its turn comes before what stands in line, in whatever
 *  queue, so a permit of its limits is kept for it. */
export function takenPermits(tenant: string, key: string): Sql {
  const name = nameOfKey(key);
  const where = name === undefined ? sql`job.limit_key = ${key}` : sql`job.name = ${name}`;
  return sql`select number from daybook_permit where tenant_id = ${tenant} and limit_key = ${key}
    union all select -line.seq from daybook_line line ${indexedBy("jobs_waiting")}
      cross join daybook_job job cross join daybook_reservation reservation
    where line.status = 'waiting' and line.waits_key is not null and line.waits_for = 'reservation' and job.seq = line.seq
      and job.tenant_id = ${tenant} and ${where} and reservation.id = line.waits_key and reservation.status = 'active'`;
}

/** Hands out permits within one claim, which counts once and then keeps count. `direct` work takes what is kept for it. */
export function createPermits(tx: Tx, { direct = false } = {}) {
  const used = new Map<string, Set<number>>();
  const usedUp = new Map<string, number>();

  async function takenOf(tenant: string, key: string): Promise<Set<number>> {
    const name = `${tenant}\n${key}`;
    let numbers = used.get(name);
    if (numbers !== undefined) return numbers;
    const rows = await tx.all<{ number: number }>(
      direct
        ? sql`select number from daybook_permit where tenant_id = ${tenant} and limit_key = ${key}`
        : takenPermits(tenant, key),
    );
    used.set(name, (numbers = new Set(rows.map((row) => row.number))));
    return numbers;
  }

  /** Takes one start from a rate; when it is used up, says until when. */
  async function takeStart(rule: RateRule): Promise<number | null> {
    const name = JSON.stringify(rule);
    const known = usedUp.get(name);
    if (known !== undefined) return known;
    const { room, opensAt } = await roomInRate(tx, rule, 1);
    if (room > 0) return null;
    await openAt(tx, rule, opensAt);
    usedUp.set(name, opensAt);
    return opensAt;
  }

  return {
    async take(job: Limited & { readonly seq: number }): Promise<Permit[] | Refused> {
      const { tenant_id, seq: job_seq } = job;
      const rules = limitsOf(job);
      const mine: [Set<number>, Permit][] = [];
      for (const limit_key of limitKeysOf(job)) {
        const most = mostOf(rules, limit_key);
        if (most === undefined) continue; // it keeps an order only
        const taken = await takenOf(tenant_id, limit_key);
        if (taken.size >= most) return { waitsFor: "key", key: limit_key, until: tx.now };
        let number = 0;
        while (taken.has(number)) number++;
        mine.push([taken, { tenant_id, limit_key, number, job_seq }]);
      }
      if (rules.rate !== undefined) {
        const until = await takeStart({ tenant: tenant_id, ...rules.rate });
        if (until !== null) return { waitsFor: "time", key: rules.rate.key, until };
      }
      for (const [taken, { number }] of mine) taken.add(number);
      return mine.map(([, permit]) => permit);
    },
  };
}

export async function writePermits(tx: Tx, permits: readonly Permit[]): Promise<void> {
  if (permits.length === 0) return;
  const columns = { tenant_id: "text", limit_key: "text", number: "integer", job_seq: "integer" } as const;
  await tx.run(sql`insert into daybook_permit (tenant_id, limit_key, number, job_seq) ${eachRow(columns, permits)}`);
}

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

/** A job waits for the rate, and is to be let in then. Every worker must know when: this one may have its hands full. */
export async function openAt(tx: Tx, rule: RateRule, opensAt: number): Promise<void> {
  const changed = await tx.run(sql`update daybook_rate_window set opens_at = ${opensAt}
    where tenant_id = ${rule.tenant} and rate_key = ${rule.key} and opens_at is distinct from ${opensAt}`);
  if (changed > 0) tx.wake(jobsChannel);
}

type RateKey = Pick<RateRule, "tenant" | "key">;
type KeptWindow = RateWindow & { readonly opens_at: number | null };
type RateWindow = { readonly window_at: number; readonly used: number; readonly let_in: number };

export async function readWindow(tx: Pick<Tx, "get">, { tenant, key }: RateKey): Promise<KeptWindow | undefined> {
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
