// Retention of telemetry: what is old, or too much, leaves in slices, each a short transaction, so that writers get their turn in
// between. What is looked for is read off the event loop. It may be cut off and repeated, and several may do it at once.
import { limits } from "../../core/limits.ts";
import type { Store } from "../../storage/store.ts";
import { foldRuns } from "../rollup/folder.ts";
import {
  firstSeq,
  lastSeqBefore,
  readLiveSeries,
  readOldOfAll,
  readOldRuns,
  type LiveSeries,
  type OldRun,
} from "./live-series.ts";
import type { Policy } from "./policy.ts";
import { removeLogs, removeRuns, type Reason } from "./remove.ts";
import { retainRollups } from "./rollups.ts";
import { planForSize } from "./size.ts";

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
  // A run leaves its mark in the rollups before it leaves.
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
    ...{ dryRun: policy.dryRun, runs: sum.runs, logs: sum.logs, rollups: counts.rollups },
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

// One run with more lines than a slice may have loses them first.
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
    // Up to the first that is too young: what is passed by is not looked at again.
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

/** Runs in their order, so many that they and their lines stay within the limit; one that is over it comes alone. */
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
