// Retention of jobs: those that have ended leave with everything that is theirs. It walks over the jobs by ranges of their numbers,
// off the event loop, and removes what may leave in slices, each a short transaction of its own, so that writers get their turn in
// between and a retention that is cut off has done the part it did.
import { unlink } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { limits } from "../../core/limits.ts";
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { isObject } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { didYouMean, refuseUnknown } from "../../core/suggest.ts";
import { joinSql, sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { account, type Reason } from "../../telemetry/retention/remove.ts";
import { foldRuns } from "../../telemetry/rollup/roll-up.ts";
import type { ReadRows } from "../definition.ts";
import type { Engine } from "../engine.ts";
import { endedStatuses, jobNow, openStatuses, type FinishedStatus } from "../job.ts";
import { kindOf } from "../kind.ts";
import { countRemoved, findBundles, removeBundles, type Bundle, type Removed } from "./bundle.ts";

/** Which ended jobs leave. */
export type JobRule = {
  /** Only what ended at least this long ago. */
  readonly olderThan?: Duration;
  /** Not the so many that ended last, of those that `queue`, `name` and `status` leave. */
  readonly keep?: number;
  readonly queue?: string;
  readonly name?: string;
  /** How a job, or the last of its retries, must have ended; default however it did. */
  readonly status?: FinishedStatus | readonly FinishedStatus[];
};

/** Of the jobs that `which` holds for, those leave that fit one of the rules. */
export type JobPart = { readonly which: Sql; readonly rules: readonly JobRule[] };

export type RetainedJobs = Removed & {
  /** In how many transactions. */
  readonly slices: number;
  /** How many of `files` were deleted: those in the book's own folder that were there. */
  readonly filesDeleted: number;
};

/** `byHand`: reservations that nothing takes with it leave by the ages of these rules. */
export type RetainJobs = {
  readonly parts: readonly JobPart[];
  readonly byHand: readonly JobRule[];
  readonly now: number;
  readonly dryRun: boolean;
  /** Ends it after the slice that it is at. */
  readonly signal?: AbortSignal | undefined;
  /** Told after each slice how many jobs left with it. */
  readonly tell?: (left: number) => void;
};

export async function retainJobs(engine: Engine, tenant: string, asked: RetainJobs): Promise<RetainedJobs> {
  const { store } = engine;
  const { dryRun, signal } = asked;
  const kinds = Object.keys(engine.kinds).filter((kind) => kindOf(engine, { kind }).removed !== null);
  const none = countRemoved([], []);
  let all: RetainedJobs = { ...none, slices: 0, filesDeleted: 0 };
  const leaving = await fix(store, tenant, asked);
  // A run leaves its mark in the rollups before it leaves.
  if (leaving !== null && !dryRun) await foldRuns(store);
  for await (const slice of slicesOf(bundlesThatLeave(store, leaving), kinds)) {
    if (signal?.aborted === true) return all;
    const gone =
      dryRun || leaving === null
        ? countRemoved(slice, kinds)
        : await store.write((tx) => removeBundles(tx, engine, leaving, slice), { tenant });
    if (gone.jobs === 0) continue;
    // After the commit: a row without its file is a gap in the history, a file without its row is only in the way.
    all = add(all, gone, dryRun ? 0 : await deleteFiles(engine.files, gone.files));
    asked.tell?.(gone.jobs);
  }
  for (const reservations of await retainReservations(store, tenant, asked)) {
    all = add(all, { ...none, reservations }, 0);
  }
  return all;
}

function add({ others, files, ...before }: RetainedJobs, gone: Removed, filesDeleted: number): RetainedJobs {
  const { others: more, files: paths, ...counts } = gone;
  const sums = sum(before, { ...counts, slices: 1, filesDeleted });
  return { ...before, ...sums, others: sum(others, more), files: [...files, ...paths] };
}

type Counts = Readonly<Record<string, number>>;

function sum(before: Counts, more: Counts): Counts {
  const added = Object.entries(more).map(([name, count]) => [name, (before[name] ?? 0) + count] as const);
  return { ...before, ...Object.fromEntries(added) };
}

/** As many bundles as stay within the limit; one that is over it by itself leaves alone. */
async function* slicesOf(bundles: AsyncIterable<Bundle>, kinds: readonly string[]): AsyncGenerator<Bundle[]> {
  let [slice, rows]: [Bundle[], number] = [[], 0];
  for await (const bundle of bundles) {
    const own = rowsOf(countRemoved([bundle], kinds));
    if (slice.length > 0 && rows + own > limits.retainRowsMax) {
      yield slice;
      [slice, rows] = [[], 0];
    }
    slice.push(bundle);
    rows += own;
  }
  if (slice.length > 0) yield slice;
}

function rowsOf({ others, files, ...counts }: Removed): number {
  return [...Object.values(counts), ...Object.values(others)].reduce((sum, count) => sum + count, files.length);
}

/** The bundles that may leave. Jobs that are made meanwhile are not looked at. */
async function* bundlesThatLeave(store: Store, leaving: Leaving | null): AsyncGenerator<Bundle> {
  if (leaving === null) return;
  const read: ReadRows = (statement) => store.readHeavy(statement);
  const [end] = await read<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job`);
  for (let after = 0; end?.seq != null && after < end.seq;) {
    // Counted in rows, not in numbers: what has left before leaves wide gaps.
    const [range] = await read<{
      seq: number | null;
      made: number | null;
    }>(sql`select max(seq) as seq, min(created_at) as made
      from (select seq, created_at from daybook_job where seq > ${after} order by seq limit ${limits.retainRowsMax}) as next`);
    // Jobs that were made since cannot have ended by then.
    if ((range?.made ?? 0) > leaving.endedBy) return;
    const to = range?.seq ?? Number.MAX_SAFE_INTEGER;
    yield* await findBundles(read, leaving, { after, to });
    after = to;
  }
}

// Their rows are gone by then, so nothing here may fail: a file that cannot be deleted is left, and is not counted.
// Only files that stand in the book's own folder are touched, whatever a row says.
async function deleteFiles(folder: string, paths: readonly string[]): Promise<number> {
  const own = paths.filter((path) => isAbsolute(path) && dirname(resolve(path)) === resolve(folder));
  // One may be gone already, or be on another machine.
  const deleted = await Promise.allSettled(own.map((path) => unlink(path)));
  return deleted.filter(({ status }) => status === "fulfilled").length;
}

// Reservations that nothing else takes with it: those made by hand, and those whose job is gone. They have ended and
// do not change any more, and they leave by their age alone; a rule that asks for names or ends of jobs is not about them.
async function retainReservations(
  store: Store,
  tenant: string,
  { byHand, now, dryRun }: RetainJobs,
): Promise<number[]> {
  const ages = byHand.filter((rule) => rule.olderThan !== undefined && rule.name === undefined && isOfAll(rule));
  if (ages.length === 0) return [];
  const old = anyOfThese(
    ages.map(
      ({ olderThan = 0, queue }) => sql`(reservation.ended_at <= ${now - durationMs(olderThan, "olderThan")}
        ${queue === undefined ? sql`` : sql`and reservation.lane_seq = ${laneOf(tenant, queue)}`})`,
    ),
  );
  const which = sql`reservation.tenant_id = ${tenant} and reservation.status <> 'active' and ${old} and not exists (
    select 1 from daybook_job job where job.tenant_id = reservation.tenant_id and job.id = reservation.job_id)`;
  const [{ leave } = { leave: 0 }] = await store.readHeavy<{ leave: number }>(
    sql`select count(*) as leave from daybook_reservation reservation where ${which}`,
  );
  if (dryRun || leave === 0) return leave === 0 ? [] : [leave];
  const slices: number[] = [];
  while (slices.at(-1) !== 0) slices.push(await store.write((tx) => removeReservations(tx, tenant, which)));
  return slices.slice(0, -1);
}

async function removeReservations(tx: Tx, tenant: string, which: Sql): Promise<number> {
  const gone = await tx.all<{ reserved_at: number }>(sql`delete from daybook_reservation where seq in (
    select seq from daybook_reservation reservation where ${which} order by seq limit ${limits.retainRowsMax})
    returning reserved_at`);
  const made = gone.map((row) => row.reserved_at);
  await account(tx, tenant, [{ what: "reservation", reason: "age", removed: gone.length, made }]);
  return gone.length;
}

/** The rules, checked and fixed to one moment for the whole of a retention. */
export type Leaving = {
  readonly tenant: string;
  /** When it began; a key that is held beyond this keeps its job. */
  readonly now: number;
  /** The latest end with which one may leave. */
  readonly endedBy: number;
  /** What the first job of a chain must be to be looked at, of `job` and `run`. */
  readonly heads: Sql;
  /** What the last job of a chain must be to let the chain go, of `job`, `chain` and `job_group`. */
  readonly last: Sql;
  readonly reason: Reason;
};

/** Null when nothing can leave: there are fewer than are to be kept. */
async function fix(store: Store, tenant: string, { parts, now }: RetainJobs): Promise<Leaving | null> {
  const heads: Sql[] = [];
  const last: Sql[] = [];
  let latest = -Infinity;
  for (const { which, rules } of parts) {
    for (const { olderThan, keep, queue, name, status } of rules) {
      const endedBy = olderThan === undefined ? Number.MAX_SAFE_INTEGER : now - durationMs(olderThan, "olderThan");
      const asked = sql`${which} and job.finished_at is not null and job.status ${anyOf("text", [status ?? ended].flat())}
        ${queue === undefined ? sql`` : sql`and job.lane_seq = ${laneOf(tenant, queue)}`}
        ${name === undefined ? sql`` : sql`and job.name = ${name}`}`;
      const newest = keep === undefined ? sql`` : await findNewest(store, tenant, asked, keep);
      if (newest === null) continue;
      heads.push(sql`(${which} and coalesce(run.ended_at, job.cancelled_at) <= ${endedBy})`);
      last.push(sql`(${asked} and job.finished_at <= ${endedBy}
        and (chain.group_seq is null or job_group.finished_at <= ${endedBy}) ${newest})`);
      latest = Math.max(latest, endedBy);
    }
  }
  if (last.length === 0) return null;
  const byAge = parts.some(({ rules }) => rules.some(({ olderThan }) => olderThan !== undefined));
  return {
    tenant,
    now,
    endedBy: latest,
    heads: anyOfThese(heads),
    last: sql`job.seq is distinct from ${await findLastInUse(store)} and ${anyOfThese(last)}`,
    reason: byAge ? "age" : "count",
  };
}

function anyOfThese(conditions: readonly Sql[]): Sql {
  return sql`(${joinSql(conditions, " or ")})`;
}

function laneOf(tenant: string, queue: string): Sql {
  return sql`(select seq from daybook_lane where tenant_id = ${tenant} and queue = ${queue})`;
}

// On SQLite the next job's number, and with it its place in line, follows from the highest there is. Were that one removed,
// the next would stand before an open job that was moved to the end. PostgreSQL never gives a number twice.
async function findLastInUse(store: Store): Promise<number | null> {
  if (store.dialect !== "sqlite") return null;
  const [last] = await store.readHeavy<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job
    where exists (select 1 from daybook_line)`);
  return last?.seq ?? null;
}

// The last jobs of chains, in the order in which they ended; null when there are no more than are kept. All of the tenant's
// are read for it, but off the event loop, and an index would be paid for by every job that ends.
async function findNewest(store: Store, tenant: string, asked: Sql, keep: number): Promise<Sql | null> {
  const [first] = await store.readLong<{ finished_at: number; seq: number }>(sql`select job.finished_at, job.seq
    from ${jobNow} where job.tenant_id = ${tenant} and ${asked}
      and not exists (select 1 from daybook_job child where child.retry_of = job.seq)
    order by job.finished_at desc, job.seq desc limit 1 offset ${keep}`);
  return first === undefined ? null : sql`and (job.finished_at, job.seq) <= (${first.finished_at}, ${first.seq})`;
}

const ended: readonly FinishedStatus[] = endedStatuses;
const open: readonly string[] = openStatuses;

function isOfAll({ status }: JobRule): boolean {
  return status === undefined || ended.every((each) => [status].flat().includes(each));
}

/** `what` is what its caller calls it: `retention.jobs`. */
export function checkJobRule(rule: unknown, what: string): JobRule {
  if (!isObject(rule))
    throw invalid(`${what} is ${quote(rule)}: give an age such as "30d", or { olderThan: "7d", keep: 1000 }`);
  refuseUnknown(rule, ["olderThan", "keep", "queue", "name", "status"], what);
  const { olderThan, keep, queue, name, status } = rule as JobRule;
  if (olderThan === undefined && keep === undefined) {
    throw invalid(`${what} needs "olderThan", "keep" or both: { olderThan: "30d", keep: 1000 }`);
  }
  if (olderThan !== undefined) durationMs(olderThan, `${what}.olderThan`);
  if (keep !== undefined) checkCount(keep, `${what}.keep`, 0, Number.MAX_SAFE_INTEGER);
  if (queue !== undefined) checkName(queue, "queue");
  if (name !== undefined) checkName(name, "job name");
  if (status !== undefined) checkStatuses([status].flat());
  return rule;
}

function checkStatuses(statuses: readonly FinishedStatus[]): void {
  if (statuses.length === 0) throw invalid("status is an empty list, which no job fits: leave it out for all");
  for (const status of statuses) {
    if (ended.includes(status)) continue;
    if (open.includes(status)) {
      throw invalid(`status "${status}" is not an end: only ${ended.join(", ")} jobs can leave; cancel it first`);
    }
    throw invalid(`status ${quote(status)} is not known${didYouMean(status, ended)} Give ${ended.join(", ")}`);
  }
}
