// Limits are counted from live claims, in the transaction of the claim: read the candidates, lock the limits they
// name, count who is running, then take. A running job holds a numbered permit of each of its limits, and the primary key
// of permits makes a breach impossible even if this file were wrong. Jobs without limits pay nothing.
import { limits } from "../core/limits.ts";
import { lockKey } from "../storage/lock-key.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { eachRow, indexedBy } from "../storage/word.ts";
import { waitingFor, type Reason } from "./park.ts";
import { openAt, roomInRate, type RateRule } from "./rate.ts";

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
const read = new Map<string, Limits>();
const readMax = 1000;

export function limitsOf({ limits }: Pick<Limited, "limits">): Limits {
  if (limits === null) return unlimited;
  let known = read.get(limits);
  if (known === undefined) {
    if (read.size >= readMax) read.clear();
    read.set(limits, (known = JSON.parse(limits) as Limits));
  }
  return known;
}

/** A permit that a job takes with it when it starts. */
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

export function lockNames(jobs: readonly Limited[]): string[] {
  return jobs.flatMap((job) => (job.limits === null ? [] : reasonsOf(job).map(lockOf)));
}

export function lockOf({ waitsFor, tenant, key }: Reason): string {
  return waitsFor === "time" ? `${tenant}\nrate\n${key}` : `${tenant}\n${key}`;
}

/** Locks limits until the transaction ends, so that nobody counts what another is about to take. SQLite's only writer
 *  needs none. On PostgreSQL it is a statement of its own, because a statement's snapshot is older than its locks; the
 *  order keeps two claimers from waiting for each other. */
export async function lockLimits(tx: Tx, names: readonly string[]): Promise<void> {
  if (tx.dialect === "sqlite" || names.length === 0) return;
  const ordered = JSON.stringify([...new Set(names)].sort());
  await tx.all(sql`select pg_catalog.pg_advisory_xact_lock(${rawSql(lockKey("value"))})
    from jsonb_array_elements_text(${ordered}::jsonb) with ordinality order by ordinality`);
}

/** Locks those limits that nobody else has locked, and returns the others. Whoever claims waits for no limit: it holds
 *  those of the jobs it has just settled, and two that wait for each other's would never end. */
export async function tryLimits(tx: Tx, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (tx.dialect === "sqlite" || names.length === 0) return new Set();
  const wanted = JSON.stringify([...new Set(names)]);
  const busy = await tx.all<{ value: string }>(sql`select value from jsonb_array_elements_text(${wanted}::jsonb)
    where not pg_catalog.pg_try_advisory_xact_lock(${rawSql(lockKey("value"))})`);
  return new Set(busy.map((row) => row.value));
}

/** How many permits of a limit are taken. Direct work that waits for its turn comes before what stands in line, in whatever
 *  queue, so a permit of its limits is kept for it. */
function takenPermits(tenant: string, key: string): Sql {
  const name = nameOfKey(key);
  const where = name === undefined ? sql`job.limit_key = ${key}` : sql`job.name = ${name}`;
  return sql`select number from daybook_permit where tenant_id = ${tenant} and limit_key = ${key}
    union all select -line.seq from daybook_line line ${indexedBy("jobs_waiting")}
      cross join daybook_job job cross join daybook_reservation reservation
    where line.status = 'waiting' and line.waits_key is not null and line.waits_for = 'reservation' and job.seq = line.seq
      and job.tenant_id = ${tenant} and ${where} and reservation.id = line.waits_key and reservation.status = 'active'`;
}

/** How many of those who wait for a limit or a rate may be let in. */
export async function roomFor(tx: Tx, of: Reason): Promise<number> {
  const rules = await limitsOfFirst(tx, of);
  if (of.waitsFor === "time") {
    if (rules.rate === undefined) return 0;
    return Math.min((await roomInRate(tx, { tenant: of.tenant, ...rules.rate })).room, limits.claimParkedMax);
  }
  const taken = await tx.all(takenPermits(of.tenant, of.key));
  return Math.max(0, (mostOf(rules, of.key) ?? 0) - taken.length);
}

export async function limitsOfFirst(tx: Tx, reason: Reason): Promise<Limits> {
  const first = await tx.get<{ limits: string | null }>(sql`select limits from daybook_job job
    where seq = (select seq ${waitingFor(reason)} order by lane_seq, priority desc, position, seq limit 1)`);
  return limitsOf(first ?? { limits: null });
}

/** Hands out permits within one claim: what was counted once is kept up to date as jobs are taken. `direct` work itself takes
 *  what is kept for it. */
export function createPermits(
  tx: Tx,
  { direct = false } = {},
): { take(job: Limited & { readonly seq: number }): Promise<Permit[] | Refused> } {
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
    async take(job) {
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
