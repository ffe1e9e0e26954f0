// A copy of a book (a backup that is opened, or a file that was copied and marked as one) knows what the original had still to
// do, and the original may do it, or has done it. So in a copy everything that was open waits for its release: it stands
// outside the index that claims read, like whatever waits, and so costs the path nothing. What is enqueued in the copy later is
// the copy's own and runs as ever.
//
// What ran when the copy was made has, as far as the copy knows, not begun. A job that waits behind another (for its group, or
// for the one that its schedule made before it) stays there and follows the first: when that is released, it comes after it;
// when that is cancelled, it is held in its place.
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { checkTenant } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { anyOf, indexedBy } from "../../storage/word.ts";
import { cancelUnstarted } from "../settle/cancel.ts";
import type { Ports } from "../kind.ts";
import { jobsChannel } from "../job.ts";
import { listedKinds, type ListedKind } from "../explain/list.ts";
import { holdOpen, park, queue } from "../state.ts";

/** Run on a copy: what was open is held, and nothing of the original's processes is taken for alive. */
export function holdJobs(now: number): readonly Sql[] {
  const note = "the book was copied while it ran; whatever became of it is known to the original";
  return [
    holdOpen,
    sql`delete from daybook_permit`,
    sql`delete from daybook_lease`,
    sql`update daybook_reservation set status = 'expired', ended_at = ${now} where status = 'active'`,
    // Otherwise the programs of the original would be taken for orphans, and ended.
    sql`update daybook_run_command set ended_at = ${now}, note = ${note} where ended_at is null`,
  ];
}

export type HeldFilter = {
  /** Only jobs of this kind; `schedule` also names the schedules themselves. */
  readonly kind?: ListedKind;
  readonly tenant?: string;
  /** Only jobs that were made at least this long ago. */
  readonly olderThan?: Duration;
  /** Only jobs that were made within this time. */
  readonly newerThan?: Duration;
};

export type HeldJobs = {
  readonly tenant: string;
  readonly kind: ListedKind;
  readonly count: number;
  /** How many of them stand behind another one, in its group or in the order of its schedule, and follow it. */
  readonly behind: number;
  /** When the oldest and the newest of them were made. */
  readonly oldestAt: number;
  readonly newestAt: number;
};

/** What a filter leaves of held jobs, at one moment. */
export type HeldRule = { readonly kind: string | undefined; readonly tenant: string | undefined; readonly fits: Sql };

export function toHeldRule(now: number, { kind, tenant, olderThan, newerThan }: HeldFilter): HeldRule {
  if (kind !== undefined && !listedKinds.includes(kind)) {
    throw invalid(`kind ${quote(kind)} is not known: ${listedKinds.join(", ")}`);
  }
  if (tenant !== undefined) checkTenant(tenant);
  const parts = [
    tenant === undefined ? sql`` : sql`and job.tenant_id = ${tenant}`,
    kind === undefined ? sql`` : sql`and coalesce(job.kind, 'job') = ${kind}`,
    olderThan === undefined ? sql`` : sql`and job.created_at <= ${now - durationMs(olderThan, "olderThan")}`,
    newerThan === undefined ? sql`` : sql`and job.created_at >= ${now - durationMs(newerThan, "newerThan")}`,
  ];
  return { kind, tenant, fits: parts.reduce((all, part) => sql`${all} ${part}`, sql``) };
}

const isFirst = sql`line.status = 'waiting' and line.waits_for = 'release' and line.waits_key is not null`;

// Those that wait behind a held one are held as well: `first` is the one in front of `line`.
const isBehind = sql`((line.waits_for = 'group' and first.group_seq = line.group_seq)
  or (line.waits_for = 'order' and line.order_key is null and first.kind = line.kind and first.kind_seq = line.kind_seq))`;

const isFirstOfLine = sql`first.status = 'waiting' and first.waits_for = 'release' and first.waits_key is not null`;

/** What the filter names. A job that stands behind another goes with it, and is dropped with it if the filter names it as well. */
export async function countHeld(store: Store, { fits }: HeldRule, { drop = false } = {}): Promise<HeldJobs[]> {
  // Most books are no copies, and need not read their whole line to say so.
  const [any] = await store.read(sql`select line.seq from daybook_line line ${indexedBy("jobs_waiting")}
    where ${isFirst} limit 1`);
  if (any === undefined) return [];
  const alsoFits = drop ? fits : sql``;
  return store.readHeavy<HeldJobs>(sql`with held as (
      select job.seq from daybook_line line join daybook_job job on job.seq = line.seq where ${isFirst} ${fits})
    select job.tenant_id as tenant, coalesce(job.kind, 'job') as kind, count(*) as count,
      sum(case when line.waits_for = 'release' then 0 else 1 end) as behind,
      min(job.created_at) as "oldestAt", max(job.created_at) as "newestAt"
    from daybook_line line join daybook_job job on job.seq = line.seq
    where line.seq in (select seq from held) or (line.waits_for in ('group', 'order') and exists (
      select 1 from daybook_line first where ${isFirstOfLine} and ${isBehind} and first.seq in (select seq from held)) ${alsoFits})
    group by 1, 2 order by 1, 2`);
}

const sliceMax = 500;

/** Lets held jobs go, a slice at a time: those whose time is to come wait for it, the others are in line. Says how many, with those
 *  that follow them. */
export async function releaseHeld(store: Store, rule: HeldRule): Promise<number> {
  let released = 0;
  for (;;) {
    const slice = await store.write((tx) => releaseSlice(tx, rule));
    released += slice.first + slice.behind;
    if (slice.first < sliceMax) return released;
  }
}

type Held = { readonly seq: number; readonly available_at: number };

async function releaseSlice(tx: Tx, { fits }: HeldRule): Promise<{ first: number; behind: number }> {
  const held = await tx.all<Held>(sql`select line.seq, line.available_at
    from daybook_line line join daybook_job job on job.seq = line.seq where ${isFirst} ${fits}
    order by line.seq limit ${sliceMax}`);
  const isDue = ({ available_at: at }: Held): boolean => at <= tx.now;
  const due = held.filter(isDue).map(({ seq }) => seq);
  await queue(tx, sql`select seq from daybook_line where seq ${anyOf("integer", due)} order by seq`, "release");
  const later = held.filter((job) => !isDue(job));
  await park(
    tx,
    later.map((job) => ({ ...job, waits_for: "time", waits_key: null })),
  );
  if (held.length === 0) return { first: 0, behind: 0 };
  tx.wake(jobsChannel);
  return { first: held.length, behind: await countBehind(tx, held) };
}

async function countBehind(tx: Tx, firsts: readonly Held[]): Promise<number> {
  const seqs = firsts.map(({ seq }) => seq);
  const found = await tx.get<{ count: number }>(sql`select count(*) as count from daybook_line line
    where line.status = 'waiting' and line.waits_for in ('group', 'order') and exists (select 1 from daybook_line first
      where first.seq ${anyOf("integer", seqs)} and ${isBehind})`);
  return found?.count ?? 0;
}

/** Cancels held jobs, a slice at a time. Says how many. */
export async function dropHeld(store: Store, ports: Ports, rule: HeldRule): Promise<number> {
  let dropped = 0;
  for (;;) {
    const [first, ...more] = await store.readHeavy<Dropped & { tenant: string }>(sql`select job.id,
        job.tenant_id as tenant, line.group_seq as "group" from daybook_line line join daybook_job job on job.seq = line.seq
      where ${isFirst} ${rule.fits} order by job.tenant_id, line.seq limit ${sliceMax}`);
    if (first === undefined) return dropped;
    const slice = [first, ...more.filter(({ tenant }) => tenant === first.tenant)];
    dropped += await store.write((tx) => dropAll(tx, ports, slice), { tenant: first.tenant });
  }
}

type Dropped = { readonly id: string; readonly group: number | null };

async function dropAll(tx: Tx, ports: Ports, jobs: readonly Dropped[]): Promise<number> {
  let dropped = 0;
  for (const { id, group } of jobs) {
    // The end of one may end others of its group.
    const before = group === null ? 1 : await openOf(tx, group);
    if (await cancelUnstarted(tx, ports, id)) dropped += before - (group === null ? 0 : await openOf(tx, group));
  }
  return dropped;
}

async function openOf(tx: Tx, group: number): Promise<number> {
  const found = await tx.get<{ count: number }>(
    sql`select count(*) as count from daybook_line where group_seq = ${group}`,
  );
  return found?.count ?? 0;
}
