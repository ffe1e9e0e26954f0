// Retention of telemetry: rows that are too old, or too many, leave in slices. Each slice is a short transaction, so that other
// writers get their turn in between. Reads run off the event loop. It may be interrupted and repeated, and several processes may
// do it at once.
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { foldRuns, lockMark } from "../rollup/roll-up.ts";
import {
  account,
  firstSeq,
  lastSeqBefore,
  readLiveSeries,
  readOldOfAll,
  readOldRuns,
  removeLogs,
  removeRuns,
} from "./remove.ts";
import type { LiveSeries, OldRun, Reason } from "./remove.ts";

export type RetainOptions = {
  /** Runs of live listeners, and jobs of apps' schedules with their runs; default 7 days. */
  readonly runs?: Duration;
  /** Lines that live listeners logged; default 3 days. A job's lines go with the job. */
  readonly logs?: Duration;
  /** Counts by minute, hour and day; default 400 days. */
  readonly rollups?: Duration;
  /** About how many bytes the runs of live listeners and their lines may take; the oldest leave first. Default 1 GiB. */
  readonly bytes?: number;
  /** Reads only, and says what would be removed. */
  readonly dryRun?: boolean;
};

/** Fixed to one moment for the whole of a retention. */
export type Policy = {
  /** Null: every tenant. */
  readonly tenant: string | null;
  readonly runsBy: number;
  readonly logsBy: number;
  readonly rollupsBy: number;
  readonly bytesMax: number;
  readonly dryRun: boolean;
};

const known = ["runs", "logs", "rollups", "bytes", "dryRun"] as const;

export function toPolicy(now: number, tenant: string | null, options: RetainOptions = {}): Policy {
  refuseUnknown(options, known, "retain");
  const { runs, logs, rollups, bytes = limits.telemetryBytesMax, dryRun = false } = options;
  if (typeof dryRun !== "boolean") throw invalid(`dryRun is ${quote(dryRun)}: true or false`);
  const by = (given: Duration | undefined, days: number, what: string): number =>
    now - (given === undefined ? days * 86_400_000 : durationMs(given, what));
  return {
    tenant,
    runsBy: by(runs, limits.runDays, "runs"),
    logsBy: by(logs, limits.logDays, "logs"),
    rollupsBy: by(rollups, limits.rollupDays, "rollups"),
    bytesMax: checkCount(bytes, "bytes", 0, Number.MAX_SAFE_INTEGER),
    dryRun,
  };
}

export type Retained = {
  /** True: this is what would be removed, and nothing was. */
  readonly dryRun: boolean;
  /** Runs of live listeners. */
  readonly runs: number;
  /** Lines that live listeners logged. */
  readonly logs: number;
  /** Counts by minute, hour, day and session, and failures by minute. */
  readonly rollups: number;
  /** In how many transactions. */
  readonly slices: number;
};

type Sum = { runs: number; logs: number; rollups: number; slices: number };

export async function retainTelemetry(store: Store, policy: Policy): Promise<Retained> {
  const sum: Sum = { runs: 0, logs: 0, rollups: 0, slices: 0 };
  // Rollups count a run before it leaves.
  if (!policy.dryRun) await foldRuns(store);
  const all = await readLiveSeries(store, policy.tenant);
  for (const series of all) await retainLogs(store, series, policy, sum);
  const firsts = await Promise.all(all.map((series) => firstSeq(store, series)));
  const first = Math.min(...firsts.map((seq) => seq ?? Infinity));
  const lasts = await Promise.all(all.map((series) => lastSeqBefore(store, series, policy.runsBy)));
  await retainRuns(store, { policy, first, to: Math.max(0, ...lasts), by: policy.runsBy, reason: "age" }, sum);
  const plan = await planForSize(store, policy, sum.runs);
  if (plan !== null) await retainRuns(store, { policy, first, to: plan.to, by: null, reason: "size" }, sum);
  const counts = await retainRollups(store, policy);
  return {
    dryRun: policy.dryRun,
    runs: sum.runs,
    logs: sum.logs,
    rollups: counts.rollups,
    slices: sum.slices + counts.slices,
  };
}

type Leaving = {
  readonly policy: Policy;
  /** The lowest number to look at, and the highest that may leave. */
  readonly first: number;
  readonly to: number;
  /** Only what started before then; null: whenever. */
  readonly by: number | null;
  readonly reason: Reason;
};

async function retainRuns(store: Store, { policy, first, to, by, reason }: Leaving, sum: Sum): Promise<void> {
  for (let after = first - 1; after < to;) {
    const page = await readOldOfAll(store, policy.tenant, { after, to, by, limit: limits.retainRowsMax });
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.seq;
    for (const [tenant, own] of Map.groupBy(page, (run) => run.tenant_id)) {
      for (const slice of slicesOf(own.filter((run) => run.pinned === 0))) {
        if (!policy.dryRun) await shorten(store, tenant, slice, sum);
        const gone = policy.dryRun
          ? { runs: slice.length, logs: slice.reduce((lines, run) => lines + run.logs, 0) }
          : await store.write((tx) => removeRuns(tx, tenant, slice, reason), { tenant });
        sum.runs += gone.runs;
        sum.logs += gone.logs;
        sum.slices++;
      }
    }
  }
}

// A run with more lines than fit into a slice loses its lines first.
async function shorten(store: Store, tenant: string, [run]: readonly OldRun[], sum: Sum): Promise<void> {
  for (let left = run?.logs ?? 0; run !== undefined && left > limits.retainRowsMax; left -= limits.retainRowsMax) {
    sum.logs += await store.write((tx) => removeLogs(tx, tenant, [run]), { tenant });
    sum.slices++;
  }
}

async function retainLogs(store: Store, series: LiveSeries, { logsBy, dryRun }: Policy, sum: Sum): Promise<void> {
  const to = await lastSeqBefore(store, series, logsBy);
  for (let after = series.logs_gone_seq; after < to;) {
    const page = await readOldRuns(store, series, { after, to, limit: limits.retainRowsMax });
    // It stops at the first run that is too young, because runs that were passed are not read again.
    const young = page.findIndex((run) => run.started_at >= logsBy);
    const old = young === -1 ? page : page.slice(0, young);
    for (const slice of slicesOf(old)) {
      if (!dryRun) await shorten(store, series.tenant_id, slice, sum);
      sum.logs += dryRun
        ? slice.reduce((lines, run) => lines + (run.pinned === 0 ? run.logs : 0), 0)
        : await store.write((tx) => removeLogs(tx, series.tenant_id, slice, series), { tenant: series.tenant_id });
      sum.slices++;
    }
    if (young !== -1 || page.length < limits.retainRowsMax) return;
    after = page.at(-1)?.seq ?? to;
  }
}

/** Runs in their order, in slices whose runs and lines stay within the limit; a run that exceeds it comes alone. */
function* slicesOf(runs: readonly OldRun[]): Generator<readonly OldRun[]> {
  let [slice, rows]: [OldRun[], number] = [[], 0];
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

/** Retention of the counts themselves. A series leaves with its last count. */
async function retainRollups(store: Store, policy: Policy): Promise<{ rollups: number; slices: number }> {
  const series = await store.readHeavy<{
    seq: number;
    tenant_id: string;
  }>(sql`select seq, tenant_id from daybook_run_series
    ${policy.tenant === null ? sql`` : sql`where tenant_id = ${policy.tenant}`} order by seq`);
  let [rollups, slices] = [0, 0];
  for (const { seq, tenant_id: tenant } of series) {
    const old = await store.readHeavy<{ n: number }>(sql`select
      (select count(*) from daybook_run_rollup run_rollup where ${oldRollups(seq, policy.rollupsBy)})
      + (select count(*) from daybook_run_failure where series_seq = ${seq} and at < ${policy.rollupsBy}) as n`);
    let left = old[0]?.n ?? 0;
    if (policy.dryRun) {
      rollups += left;
      if (left > 0) slices++;
    }
    while (left > 0 && !policy.dryRun) {
      const gone = await store.write((tx) => removeSlice(tx, { seq, tenant }, policy.rollupsBy), { tenant });
      rollups += gone;
      slices++;
      left = gone === 0 ? 0 : left - gone;
    }
  }
  return { rollups, slices };
}

// A session's counts leave when the session ended that long ago.
function oldRollups(series: number, by: number): Sql {
  return sql`series_seq = ${series} and ((span in ('minute', 'hour', 'day') and at < ${by})
    or (span = 'session' and exists (select 1 from daybook_session session where session.seq = run_rollup.at
      and session.stopped_at < ${by})))`;
}

async function removeSlice(tx: Tx, series: { seq: number; tenant: string }, by: number): Promise<number> {
  await lockMark(tx);
  const { seq, tenant } = series;
  const counts = await tx.run(sql`delete from daybook_run_rollup where series_seq = ${seq} and (span, at) in (
    select span, at from daybook_run_rollup run_rollup where ${oldRollups(seq, by)} order by span, at limit ${limits.retainRowsMax})`);
  const failures = await tx.run(sql`delete from daybook_run_failure where series_seq = ${seq} and (at, fingerprint) in (
    select at, fingerprint from daybook_run_failure where series_seq = ${seq} and at < ${by} limit ${limits.retainRowsMax})`);
  const left = await tx.get(sql`select 1 as one from daybook_run_rollup where series_seq = ${seq} and span <> 'ever'
    union all select 1 from daybook_run_failure where series_seq = ${seq} limit 1`);
  if (left === undefined) {
    await tx.run(sql`delete from daybook_run_rollup where series_seq = ${seq}`);
    await tx.run(sql`delete from daybook_run_series where seq = ${seq}`);
  }
  await account(tx, { tenant, what: "rollup", reason: "age", removed: counts + failures, until: by });
  return counts + failures;
}

const sampleMax = 1000;
// What a row costs besides its texts: numbers, ids, headers and the entries of indexes.
const rowBytes = 300;

/** The size budget: the last run of live listeners that must leave, or null when all of them fit. `leaving` of them leave by age
 *  anyway. The size of rows is estimated from the newest ones: neither engine tells it, and neither a file nor a PostgreSQL table
 *  shrinks when rows leave. */
async function planForSize(
  store: Store,
  { tenant, bytesMax, dryRun }: Policy,
  leaving: number,
): Promise<{ readonly to: number } | null> {
  const own = tenant === null ? sql`` : sql`and run.tenant_id = ${tenant}`;
  const live = sql`(run.job_seq is null or run.registration is not null) and run.job_seq is null ${own}`;
  const [size] = await store.readLong<{ runs: number; run_bytes: number | null; line_bytes: number | null }>(sql`select
    (select count(*) from daybook_run run where ${live}) as runs,
    (select avg(length(coalesce(error_message, '')) + length(coalesce(error_trace, ''))) from (
      select error_message, error_trace from daybook_run run where ${live} order by seq desc limit ${sampleMax}) as newest) as run_bytes,
    (select sum(length(run_log.message) + length(coalesce(run_log.fields, '')) + ${rowBytes})
      / max(newest.runs) from (select id, tenant_id, count(*) over () as runs from daybook_run run where ${live} order by seq desc
        limit ${sampleMax}) as newest
      join daybook_run_log run_log on run_log.tenant_id = newest.tenant_id and run_log.run_id = newest.id) as line_bytes`);
  // In a dry run, the runs that leave by age are still there.
  const runs = (size?.runs ?? 0) - (dryRun ? leaving : 0);
  const each = rowBytes + Number(size?.run_bytes ?? 0) + Number(size?.line_bytes ?? 0);
  const surplus = runs - Math.floor(bytesMax / each);
  if (runs === 0 || surplus <= 0) return null;
  const [last] = await store.readLong<{ seq: number }>(sql`select seq from daybook_run run where ${live}
    order by seq limit 1 offset ${(dryRun ? leaving : 0) + surplus - 1}`);
  return last === undefined ? null : { to: last.seq };
}
