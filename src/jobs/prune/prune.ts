// Prune: finished jobs leave with everything that is theirs. It walks over the jobs by ranges of their numbers, off the
// event loop, and removes what may leave in slices, each a short transaction of its own, so that writers get their turn
// in between and a prune that is cut off has done the part it did.
import { notePruning } from "../../telemetry/retention/remove.ts";
import { unlink } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { foldRuns } from "../../telemetry/rollup/roll-up.ts";
import type { ReadRows } from "../definition.ts";
import type { Engine } from "../engine.ts";
import { kindOf } from "../kind.ts";
import { countRemoved, findBundles, removeBundles, type Bundle, type Removed } from "./bundle.ts";
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { didYouMean, refuseUnknown } from "../../core/suggest.ts";
import { anyOf } from "../../storage/word.ts";
import { endedStatuses, jobNow, openStatuses, type FinishedStatus } from "../job.ts";

export type Pruned = Removed & {
  /** True: this is what would be removed, and nothing was. */
  readonly dryRun: boolean;
  /** In how many transactions. */
  readonly slices: number;
  /** How many of `files` were deleted: those in the book's own folder that were there. */
  readonly filesDeleted: number;
};

/** What the book keeps in files, and other rooms for their jobs, leaves as well. */
export async function prune(engine: Engine, tenant: string, options: PruneOptions): Promise<Pruned> {
  const { store } = engine;
  const rule = await toRule(store, tenant, options);
  const dryRun = options.dryRun === true;
  const kinds = Object.keys(engine.kinds).filter((kind) => kindOf(engine, { kind }).pruned !== null);
  const none = countRemoved([], []);
  let pruned: Pruned = { ...none, dryRun, slices: 0, filesDeleted: 0 };
  // A run leaves its mark in the rollups before it leaves.
  if (!dryRun) await foldRuns(store);
  for await (const slice of slicesOf(leaving(store, rule), kinds)) {
    const gone = dryRun
      ? countRemoved(slice, kinds)
      : await store.write((tx) => removeBundles(tx, engine, rule, slice), { tenant });
    if (gone.jobs === 0) continue;
    // After the commit: a row without its file is a gap in the history, a file without its row is only in the way.
    pruned = add(pruned, gone, dryRun ? 0 : await deleteFiles(engine.files, gone.files));
  }
  for (const reservations of await pruneReservations(store, rule, dryRun)) {
    pruned = add(pruned, { ...none, reservations }, 0);
  }
  return pruned;
}

function add({ others, files, dryRun, ...before }: Pruned, gone: Removed, filesDeleted: number): Pruned {
  const { others: more, files: paths, ...counts } = gone;
  const sums = sum(before, { ...counts, slices: 1, filesDeleted });
  return { ...before, ...sums, dryRun, others: sum(others, more), files: [...files, ...paths] };
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
    if (slice.length > 0 && rows + own > limits.pruneRowsMax) {
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
async function* leaving(store: Store, rule: Rule): AsyncGenerator<Bundle> {
  const read: ReadRows = (statement) => store.readHeavy(statement);
  const [end] =
    rule.last === null ? [] : await read<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job`);
  for (let after = 0; end?.seq != null && after < end.seq;) {
    // Counted in rows, not in numbers: what earlier prunes have removed leaves wide gaps.
    const [range] = await read<{ seq: number | null }>(sql`select max(seq) as seq
      from (select seq from daybook_job where seq > ${after} order by seq limit ${limits.pruneRowsMax}) as next`);
    const to = range?.seq ?? Number.MAX_SAFE_INTEGER;
    yield* await findBundles(read, rule, { after, to });
    after = to;
  }
}

// Their rows are gone by then, so nothing here may fail the prune: a file that cannot be deleted is left, and is not counted.
// Only files that stand in the book's own folder are touched, whatever a row says.
async function deleteFiles(folder: string, paths: readonly string[]): Promise<number> {
  const own = paths.filter((path) => isAbsolute(path) && dirname(resolve(path)) === resolve(folder));
  // One may be gone already, or be on another machine.
  const deleted = await Promise.allSettled(own.map((path) => unlink(path)));
  return deleted.filter(({ status }) => status === "fulfilled").length;
}

// Reservations that nothing else takes with it: those made by hand, and those whose job is gone. They have ended and
// do not change any more, and they leave by their age alone; a rule that asks for names or ends of jobs is not about them.
async function pruneReservations(store: Store, rule: Rule, dryRun: boolean): Promise<number[]> {
  if (!rule.byAge) return [];
  const [{ leave } = { leave: 0 }] = await store.readHeavy<{ leave: number }>(sql`select count(*) as leave
    from daybook_reservation reservation where ${oldReservations(rule)}`);
  if (dryRun || leave === 0) return leave === 0 ? [] : [leave];
  const slices: number[] = [];
  while (slices.at(-1) !== 0) slices.push(await store.write((tx) => removeSlice(tx, rule)));
  return slices.slice(0, -1);
}

async function removeSlice(tx: Tx, rule: Rule): Promise<number> {
  const gone = await tx.run(sql`delete from daybook_reservation where seq in (
    select seq from daybook_reservation reservation where ${oldReservations(rule)} order by seq limit ${limits.pruneRowsMax})`);
  if (gone > 0) await notePruning(tx, { ...rule, what: "reservation", removed: gone });
  return gone;
}

function oldReservations({ tenant, endedBy, lane }: Rule): Sql {
  return sql`reservation.tenant_id = ${tenant} and reservation.status <> 'active' and reservation.ended_at <= ${endedBy}
    ${lane === null ? sql`` : sql`and reservation.lane_seq = ${lane}`}
    and not exists (select 1 from daybook_job job where job.tenant_id = reservation.tenant_id and job.id = reservation.job_id)`;
}

// Which finished jobs may leave: what the caller asked for, checked, and fixed to one moment for the whole of a prune.

export type PruneOptions = {
  /** Only what ended at least this long ago. */
  readonly olderThan?: Duration;
  /** Not the so many that ended last, of those that `queue`, `name` and `status` leave. */
  readonly keep?: number;
  readonly queue?: string;
  readonly name?: string;
  /** How a job, or the last of its retries, must have ended; default however it did. */
  readonly status?: FinishedStatus | readonly FinishedStatus[];
  /** Reads only, and says what would be removed. */
  readonly dryRun?: boolean;
  /** @internal Only what apps made of this kind: retention of telemetry asks for it. */
  readonly kindOfApps?: string;
};

export type Rule = {
  readonly tenant: string;
  /** When the prune began; a key that is held beyond this keeps its job. */
  readonly now: number;
  readonly endedBy: number;
  readonly lane: Sql | null;
  /** What the first job of a chain must be besides: `and …`. */
  readonly heads: Sql;
  /** What the last job of a chain must be to let the chain go; null when none can be: there are fewer than are to be kept. */
  readonly last: Sql | null;
  readonly byAge: boolean;
  readonly filter: string;
};

const finished: readonly FinishedStatus[] = endedStatuses;
const open: readonly string[] = openStatuses;
const known = ["olderThan", "keep", "queue", "name", "status", "dryRun", "kindOfApps"] as const;

export async function toRule(store: Store, tenant: string, options: PruneOptions): Promise<Rule> {
  refuseUnknown(options, known, "prune");
  const { olderThan, keep, queue, name, status, dryRun, kindOfApps } = options;
  if (olderThan === undefined && keep === undefined) {
    throw invalid('prune needs "olderThan", "keep" or both: jobs.prune({ olderThan: "30d", keep: 1000 })');
  }
  if (dryRun !== undefined && typeof dryRun !== "boolean") throw invalid(`dryRun is ${quote(dryRun)}: true or false`);
  const now = olderThan === undefined ? store.clock.now() : store.time.atLeast();
  const endedBy = olderThan === undefined ? Number.MAX_SAFE_INTEGER : now - durationMs(olderThan, "olderThan");
  const statuses = [status ?? finished].flat().map(checkStatus);
  if (statuses.length === 0) throw invalid("status is an empty list, which no job fits: leave it out for all");
  if (name !== undefined) checkName(name, "job name");
  if (keep !== undefined) checkCount(keep, "keep", 0, Number.MAX_SAFE_INTEGER);
  const laneOf = (of: string): Sql => sql`(select seq from daybook_lane where tenant_id = ${tenant} and queue = ${of})`;
  const lane = queue === undefined ? null : laneOf(checkName(queue, "queue"));
  const asked = sql`job.finished_at is not null and job.status ${anyOf("text", statuses)}
    ${lane === null ? sql`` : sql`and job.lane_seq = ${lane}`} ${name === undefined ? sql`` : sql`and job.name = ${name}`}`;
  const isOfAll = finished.every((each) => statuses.includes(each));
  const newest = keep === undefined ? sql`` : await findNewest(store, tenant, asked, keep);
  const old = sql`job.finished_at <= ${endedBy} and job.seq is distinct from ${await findLastInUse(store)}`;
  return {
    tenant,
    now,
    endedBy,
    lane,
    heads: kindOfApps === undefined ? sql`` : sql`and job.kind = ${kindOfApps} and job.app is not null`,
    last: newest === null ? null : sql`${asked} and ${old} ${newest}`,
    byAge: olderThan !== undefined && name === undefined && kindOfApps === undefined && isOfAll,
    filter: toJson({ olderThan, keep, queue, name, status }, { what: "prune" }),
  };
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

function checkStatus(status: FinishedStatus): FinishedStatus {
  if (finished.includes(status)) return status;
  if (open.includes(status)) {
    throw invalid(`status "${status}" is not an end: only ${finished.join(", ")} jobs can be pruned; cancel it first`);
  }
  throw invalid(`status ${quote(status)} is not known${didYouMean(status, finished)} Give ${finished.join(", ")}`);
}
