// Limits are counted from live claims, in the transaction of the claim: read the candidates, lock the limits they
// name, count who is running, then take. A running job holds a numbered slot of each of its limits, and a unique index
// on (limit, slot) makes a breach impossible even if this file were wrong. Jobs without limits pay nothing.
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { indexedBy } from "../storage/word.ts";
import type { LaneRow } from "./lane.ts";
import { openAt, takeFromRate, type RateRule } from "./rate.ts";

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

export type Slots = { name_slot: number | null; key_slot: number | null; lane_slot: number | null };
export type OwnSlots = Omit<Slots, "lane_slot">;
export type Refused = { readonly waitsFor: "key" | "time"; readonly key: string | null; readonly until: number };

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

/** The limits that `jobs` name, as locks. */
export function lockNames(jobs: readonly Limited[]): string[] {
  return jobs.flatMap((job) => {
    const { rate } = limitsOf(job);
    const keys = limitKeysOf(job).map((key) => `${job.tenant_id}\n${key}`);
    return rate === undefined ? keys : [...keys, rateLock(job.tenant_id, rate.key)];
  });
}

export function rateLock(tenant: string, key: string): string {
  return `${tenant}\nrate\n${key}`;
}

/** Locks limits until the transaction ends, so that nobody counts what another is about to take. SQLite's only writer
 *  needs none. On PostgreSQL it is a statement of its own, because a statement's snapshot is older than its locks; the
 *  order keeps two claimers from waiting for each other. */
export async function lockLimits(tx: Tx, names: readonly string[]): Promise<void> {
  if (tx.dialect === "sqlite" || names.length === 0) return;
  const ordered = JSON.stringify([...new Set(names)].sort());
  await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(value, 0))
    from jsonb_array_elements_text(${ordered}::jsonb) with ordinality order by ordinality`);
}

/** Locks those limits that nobody else has locked, and returns the others. Whoever claims waits for no limit: it holds
 *  those of the jobs it has just settled, and two that wait for each other's would never end. */
export async function tryLimits(tx: Tx, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (tx.dialect === "sqlite" || names.length === 0) return new Set();
  const wanted = JSON.stringify([...new Set(names)]);
  const busy = await tx.all<{ value: string }>(sql`select value from jsonb_array_elements_text(${wanted}::jsonb)
    where not pg_try_advisory_xact_lock(hashtextextended(value, 0))`);
  return new Set(busy.map((row) => row.value));
}

/** Direct work that waits for its turn comes before what stands in line, in whatever queue: a slot of its limits is kept for
 *  it. These are numbers that no slot has. */
export function keptForDirect(where: Sql): Sql {
  return sql`select -job.seq as slot from job ${indexedBy("jobs_waiting")} cross join reservation
    where job.status = 'waiting' and job.waits_key is not null and job.waits_for = 'reservation' and ${where}
      and reservation.tenant_id = job.tenant_id and reservation.id = job.waits_key and reservation.status = 'active'`;
}

/** Hands out slots within one claim: what was counted once is kept up to date as jobs are taken. `direct` work itself takes
 *  what is kept for it. */
export function createSlots(
  tx: Tx,
  { direct = false } = {},
): { take(job: Limited, lane: LaneRow): Promise<OwnSlots | Refused> } {
  const used = new Map<string, Set<number>>();
  const usedUp = new Map<string, number>();
  const kept = (where: Sql): Sql => (direct ? sql`` : sql`union all ${keptForDirect(where)}`);

  async function usedSlots(key: string, count: () => PromiseLike<{ slot: number }[]>): Promise<Set<number>> {
    let slots = used.get(key);
    if (slots === undefined) used.set(key, (slots = new Set((await count()).map((row) => row.slot))));
    return slots;
  }
  const nameSlots = ({ tenant_id, name }: Limited): Promise<Set<number>> =>
    usedSlots(`name\n${tenant_id}\n${name}`, async () =>
      tx.all<{ slot: number }>(sql`select name_slot as slot from job
        where tenant_id = ${tenant_id} and name = ${name} and name_slot is not null
        ${kept(sql`job.tenant_id = ${tenant_id} and job.name = ${name}`)}`),
    );
  const keySlots = ({ tenant_id, limit_key }: Limited): Promise<Set<number>> =>
    usedSlots(`key\n${tenant_id}\n${limit_key}`, async () =>
      tx.all<{ slot: number }>(sql`select key_slot as slot from job
        where tenant_id = ${tenant_id} and limit_key = ${limit_key} and key_slot is not null
        ${kept(sql`job.tenant_id = ${tenant_id} and job.limit_key = ${limit_key}`)}`),
    );
  /** Takes one start from a rate; when it is used up, says until when. */
  async function takeStart(rule: RateRule): Promise<number | null> {
    const name = JSON.stringify(rule);
    const known = usedUp.get(name);
    if (known !== undefined) return known;
    const { granted, opensAt } = await takeFromRate(tx, rule, 1);
    if (granted > 0) return null;
    await openAt(tx, rule, opensAt);
    usedUp.set(name, opensAt);
    return opensAt;
  }

  return {
    async take(job, lane) {
      const slots: OwnSlots = { name_slot: null, key_slot: null };
      const mine: [Set<number>, number][] = [];
      const { name, key, rate } = limitsOf(job);
      if (name !== undefined) {
        const all = await nameSlots(job);
        if (all.size >= name) return { waitsFor: "key", key: nameKey(job.name), until: tx.now };
        mine.push([all, (slots.name_slot = freeSlot(all))]);
      }
      if (key !== undefined && job.limit_key !== null) {
        const all = await keySlots(job);
        if (all.size >= key) return { waitsFor: "key", key: job.limit_key, until: tx.now };
        mine.push([all, (slots.key_slot = freeSlot(all))]);
      }
      if (rate !== undefined) {
        const until = await takeStart({ tenant: lane.tenant_id, ...rate });
        if (until !== null) return { waitsFor: "time", key: rate.key, until };
      }
      for (const [all, slot] of mine) all.add(slot);
      return slots;
    },
  };
}

export function freeSlot(used: ReadonlySet<number>): number {
  let slot = 0;
  while (used.has(slot)) slot++;
  return slot;
}
