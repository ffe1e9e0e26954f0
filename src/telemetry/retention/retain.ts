// Retention of telemetry: rows that are too old, or too many, leave in slices. Each slice is a short transaction, so that other
// writers get their turn in between. Reads run off the event loop. It may be interrupted and repeated, and several processes may
// do it at once.
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { foldRuns, lockMark, readMark } from "../rollup/roll-up.ts";
import {
  account,
  firstSeq,
  lastSeqBefore,
  liveRuns,
  readLiveSeries,
  readOldOfAll,
  readOldRuns,
  removeLogs,
  removeRuns,
} from "./remove.ts";
import type { LiveSeries, OldRun, Reason } from "./remove.ts";
import { runIsPinned } from "../run.ts";

/** Fixed to one moment for the whole of a retention. What is null stays. */
export type TelemetryPolicy = {
  /** Null: every tenant. */
  readonly tenant: string | null;
  readonly runsBy: number | null;
  readonly logsBy: number | null;
  readonly rollupsBy: number | null;
  readonly bytesMax: number | null;
  readonly dryRun: boolean;
};

export type RetainedTelemetry = {
  /** Runs of live listeners. */
  readonly runs: number;
  /** Lines that live listeners logged. */
  readonly logs: number;
  /** Counts by minute, hour, day and session, and failures by minute. */
  readonly rollups: number;
  /** In how many transactions. */
  readonly slices: number;
};

type Sum = { -readonly [What in keyof RetainedTelemetry]: number };

export async function retainTelemetry(store: Store, policy: TelemetryPolicy): Promise<RetainedTelemetry> {
  const sum: Sum = { runs: 0, logs: 0, rollups: 0, slices: 0 };
  const { tenant, runsBy, logsBy, rollupsBy, dryRun } = policy;
  // Rollups count a run before it leaves. A dry run writes nothing, so it also looks at those that are not counted yet.
  if (!dryRun) await foldRuns(store);
  const mark = await readMark(store);
  const uncounted = dryRun ? [{ first: mark + 1, to: Number.MAX_SAFE_INTEGER }] : [];
  const all = await readLiveSeries(store, tenant);
  const saidOf = new Map<string, number>();
  if (logsBy !== null) {
    for (const series of all) saidOf.set(nameOf(series), await retainLogs(store, { series, by: logsBy, dryRun }, sum));
    for (const range of uncounted) sum.logs += await countLines(store, { tenant, by: logsBy, ...range });
  }
  // A dry run has counted the lines of a run that is too old for them, and removed none.
  const isSaid: IsSaid = (run) =>
    dryRun &&
    logsBy !== null &&
    run.started_at < logsBy &&
    (run.seq > mark || run.seq <= (saidOf.get(nameOf(run)) ?? 0));
  const firsts = await Promise.all(all.map((series) => firstSeq(store, series)));
  const first = Math.min(...firsts.map((seq) => seq ?? Infinity));
  if (runsBy !== null) {
    const lasts = await Promise.all(all.map((series) => lastSeqBefore(store, series, runsBy)));
    const leaving = { policy, isSaid, by: runsBy, since: null, reason: "age" } as const;
    for (const range of [{ first, to: Math.max(0, ...lasts) }, ...uncounted]) {
      await retainRuns(store, { ...leaving, ...range }, sum);
    }
  }
  const plan = await planForSize(store, policy);
  if (plan !== null) {
    await retainRuns(store, { policy, isSaid, first: 0, to: plan.to, by: null, since: runsBy, reason: "size" }, sum);
  }
  if (rollupsBy !== null) {
    const leaves = dryRun ? { by: runsBy ?? 0, to: plan?.to ?? 0 } : null;
    await retainRollups(store, { tenant, by: rollupsBy, leaves }, sum);
  }
  return sum;
}

/** Whether the lines of a run are counted already. */
type IsSaid = (run: OldRun & Pick<LiveSeries, "tenant_id" | "name">) => boolean;

function nameOf({ tenant_id: tenant, name }: Pick<LiveSeries, "tenant_id" | "name">): string {
  return `${tenant}\n${name}`;
}

type Leaving = {
  readonly policy: TelemetryPolicy;
  readonly isSaid: IsSaid;
  /** The lowest number to look at, and the highest that may leave. */
  readonly first: number;
  readonly to: number;
  /** Only what started before the one and not before the other; null: whenever. */
  readonly by: number | null;
  readonly since: number | null;
  readonly reason: Reason;
};

async function retainRuns(store: Store, asked: Leaving, sum: Sum): Promise<void> {
  const { policy, isSaid, first, to, by, since, reason } = asked;
  for (let after = first - 1; after < to;) {
    const page = await readOldOfAll(store, policy.tenant, { after, to, by, limit: limits.retainRowsMax });
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.seq;
    const leaving = page.filter((run) => run.pinned === 0 && run.started_at >= (since ?? 0));
    for (const [tenant, own] of Map.groupBy(leaving, (run) => run.tenant_id)) {
      for (const slice of slicesOf(own)) {
        if (!policy.dryRun) await shorten(store, tenant, slice, sum);
        const gone = policy.dryRun
          ? { runs: slice.length, logs: linesOf(slice.filter((run) => !isSaid(run))) }
          : await store.write((tx) => removeRuns(tx, tenant, slice, reason), { tenant });
        sum.runs += gone.runs;
        sum.logs += gone.logs;
        sum.slices++;
      }
    }
  }
}

function linesOf(runs: readonly OldRun[]): number {
  return runs.reduce((lines, run) => lines + (run.pinned === 0 ? run.logs : 0), 0);
}

type Uncounted = { readonly tenant: string | null; readonly by: number; readonly first: number; readonly to: number };

async function countLines(store: Store, { tenant, by, first, to }: Uncounted): Promise<number> {
  const limit = limits.retainRowsMax;
  for (let [after, lines] = [first - 1, 0]; ;) {
    const page = await readOldOfAll(store, tenant, { after, to, by, limit });
    lines += linesOf(page);
    after = page.at(-1)?.seq ?? to;
    if (page.length < limit) return lines;
  }
}

// A run that does not fit into a slice with all its lines loses lines first.
async function shorten(store: Store, tenant: string, [run]: readonly OldRun[], sum: Sum): Promise<void> {
  for (let left = run?.logs ?? 0; run !== undefined && 1 + left > limits.retainRowsMax; left -= limits.retainRowsMax) {
    sum.logs += await store.write((tx) => removeLogs(tx, tenant, [run]), { tenant });
    sum.slices++;
  }
}

type OldLines = { readonly series: LiveSeries; readonly by: number; readonly dryRun: boolean };

/** Returns up to which run of the series all lines are gone. */
async function retainLogs(store: Store, { series, by, dryRun }: OldLines, sum: Sum): Promise<number> {
  const to = await lastSeqBefore(store, series, by);
  let after = series.logs_gone_seq;
  while (after < to) {
    const page = await readOldRuns(store, series, { after, to, limit: limits.retainRowsMax });
    // It stops at the first run that is too young, because runs that were passed are not read again.
    const young = page.findIndex((run) => run.started_at >= by);
    const old = young === -1 ? page : page.slice(0, young);
    for (const slice of slicesOf(old)) {
      if (!dryRun) await shorten(store, series.tenant_id, slice, sum);
      sum.logs += dryRun
        ? linesOf(slice)
        : await store.write((tx) => removeLogs(tx, series.tenant_id, slice, series), { tenant: series.tenant_id });
      sum.slices++;
    }
    after = old.at(-1)?.seq ?? after;
    if (old.length < limits.retainRowsMax) break;
  }
  return after;
}

/** Runs in their order, in slices whose runs and lines stay within the limit; a run that exceeds it comes alone. */
function* slicesOf<Run extends OldRun>(runs: readonly Run[]): Generator<readonly Run[]> {
  let [slice, rows]: [Run[], number] = [[], 0];
  for (const run of runs) {
    if (slice.length > 0 && rows + 1 + run.logs > limits.retainRowsMax) {
      yield slice;
      [slice, rows] = [[], 0];
    }
    slice.push(run);
    rows += 1 + run.logs;
  }
  if (slice.length > 0) yield slice;
}

type OldCounts = {
  readonly tenant: string | null;
  readonly by: number;
  /** In a dry run, the runs that would have left: those that started before then, and those up to a number. */
  readonly leaves: { readonly by: number; readonly to: number } | null;
};
type CountedSeries = Pick<LiveSeries, "tenant_id" | "name"> & { readonly seq: number; readonly kind: string };

/** Retention of the counts themselves. A series leaves with its last count. */
async function retainRollups(store: Store, { tenant: only, by, leaves }: OldCounts, sum: Sum): Promise<void> {
  const all = await store.readHeavy<CountedSeries>(sql`select seq, tenant_id, name, kind
    from daybook_run_series ${only === null ? sql`` : sql`where tenant_id = ${only}`} order by seq`);
  for (const series of all) {
    const [old] = await store.readHeavy<{ n: number }>(sql`select
      (select count(*) from daybook_run_rollup run_rollup where ${oldRollups(series, by, leaves)})
      + (select count(*) from daybook_run_failure where series_seq = ${series.seq} and at < ${by}) as n`);
    for (let left = old?.n ?? 0; left > 0;) {
      const gone =
        leaves === null ? await store.write((tx) => removeSlice(tx, series, by), { tenant: series.tenant_id }) : left;
      sum.rollups += gone;
      sum.slices++;
      left = gone === 0 ? 0 : left - gone;
    }
  }
}

// A session's counts leave when the session ended that long ago. Those of a day stay as long as a listener has runs of that day or
// from before it: old runs are found by them.
function oldRollups(series: CountedSeries, by: number, leaves: OldCounts["leaves"] = null): Sql {
  const stays =
    leaves === null ? sql`` : sql`and (run.seq > ${leaves.to} and run.started_at >= ${leaves.by} or ${runIsPinned})`;
  const first = sql`(select run.seq from daybook_run run where ${liveRuns(series)} ${stays} order by run.seq limit 1)`;
  const found =
    series.kind === "listener" ? sql`and (span <> 'day' or last_seq < coalesce(${first}, last_seq + 1))` : sql``;
  return sql`series_seq = ${series.seq} and ((span in ('minute', 'hour', 'day') and at < ${by} ${found})
    or (span = 'session' and exists (select 1 from daybook_session session where session.seq = run_rollup.at
      and session.stopped_at < ${by})))`;
}

async function removeSlice(tx: Tx, series: CountedSeries, by: number): Promise<number> {
  await lockMark(tx);
  const { seq, tenant_id: tenant } = series;
  const counts = await tx.run(sql`delete from daybook_run_rollup where series_seq = ${seq} and (span, at) in (
    select span, at from daybook_run_rollup run_rollup where ${oldRollups(series, by)} order by span, at limit ${limits.retainRowsMax})`);
  const failures = await tx.run(sql`delete from daybook_run_failure where series_seq = ${seq} and (at, fingerprint) in (
    select at, fingerprint from daybook_run_failure where series_seq = ${seq} and at < ${by} limit ${limits.retainRowsMax})`);
  const left = await tx.get(sql`select 1 as one from daybook_run_rollup where series_seq = ${seq} and span <> 'ever'
    union all select 1 from daybook_run_failure where series_seq = ${seq} limit 1`);
  if (left === undefined) {
    await tx.run(sql`delete from daybook_run_rollup where series_seq = ${seq}`);
    await tx.run(sql`delete from daybook_run_series where seq = ${seq}`);
  }
  await account(tx, tenant, [{ what: "rollup", reason: "age", removed: counts + failures, made: [by] }]);
  return counts + failures;
}

const sampleMax = 1000;
// What a row costs besides its texts: numbers, ids, headers and the entries of indexes.
const rowBytes = 300;

/** The size budget: the last run of live listeners that must leave, or null when all of them fit. What leaves for its age is looked
 *  upon as gone, because in a dry run it is still there. The size of rows is estimated from the newest ones: neither engine tells
 *  it, and neither a file nor a PostgreSQL table shrinks when rows leave. */
async function planForSize(
  store: Store,
  { tenant, bytesMax, runsBy, logsBy }: TelemetryPolicy,
): Promise<{ readonly to: number } | null> {
  if (bytesMax === null) return null;
  const young = (by: number | null): Sql => sql`(run.started_at >= ${by ?? 0} or ${runIsPinned})`;
  const live = sql`(run.job_seq is null or run.registration is not null) and run.job_seq is null
    ${tenant === null ? sql`` : sql`and run.tenant_id = ${tenant}`} and ${young(runsBy)}`;
  const [size] = await store.readLong<{ runs: number; run_bytes: number | null; line_bytes: number | null }>(sql`select
    (select count(*) from daybook_run run where ${live}) as runs,
    (select avg(length(coalesce(error_message, '')) + length(coalesce(error_trace, ''))) from (
      select error_message, error_trace from daybook_run run where ${live} order by seq desc limit ${sampleMax}) as newest) as run_bytes,
    (select sum(length(run_log.message) + length(coalesce(run_log.fields, '')) + ${rowBytes})
      / max(run.runs) from (select id, tenant_id, started_at, count(*) over () as runs from daybook_run run where ${live}
        order by seq desc limit ${sampleMax}) as run
      join daybook_run_log run_log on run_log.tenant_id = run.tenant_id and run_log.run_id = run.id
      where ${young(logsBy)}) as line_bytes`);
  const runs = size?.runs ?? 0;
  const each = rowBytes + Number(size?.run_bytes ?? 0) + Number(size?.line_bytes ?? 0);
  const surplus = runs - Math.floor(bytesMax / each);
  if (runs === 0 || surplus <= 0) return null;
  const [last] = await store.readLong<{ seq: number }>(
    sql`select seq from daybook_run run where ${live} order by seq limit 1 offset ${surplus - 1}`,
  );
  return last === undefined ? null : { to: last.seq };
}
