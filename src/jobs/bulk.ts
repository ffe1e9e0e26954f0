// The same command for many jobs, chosen by a filter: each is a unit of its own, so that none holds up the others, and what has been
// done stays when the rest is stopped.
import { invalid, isDaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknownOfAll } from "../core/suggest.ts";
import type { Tx } from "../storage/store.ts";
import type { Engine } from "./engine.ts";
import { checkJobFilter, countJobs, listIds, type JobFilter } from "./explain/list.ts";
import { openStatuses, type JobStatus } from "./job.ts";
import { cancelJob } from "./settle/cancel.ts";
import { retryJob } from "./settle/settle.ts";

export type BulkOptions = {
  /** Only says how many there are. */
  readonly dryRun?: boolean;
  /** Ends it after the slice that it is at. */
  readonly signal?: AbortSignal;
  /** Told after each slice. */
  readonly progress?: (done: number, total: number) => void;
};

export type Bulk = {
  readonly dryRun: boolean;
  /** How many it was done to, or would be. */
  readonly count: number;
  /** How many were passed, because they had ended or gone on meanwhile. */
  readonly passed: number;
  /** It was ended before it was through. */
  readonly stopped: boolean;
};

const sliceMax = 100;

export async function cancelAll(
  engine: Engine,
  tenant: string,
  filter: JobFilter,
  options: BulkOptions = {},
): Promise<Bulk> {
  const which = { ...filter, status: statusOf(filter, openStatuses, openStatuses) };
  return each(engine, tenant, which, options, (tx, id) => cancelJob(tx, engine, id));
}

export async function retryAll(
  engine: Engine,
  tenant: string,
  filter: JobFilter,
  options: BulkOptions = {},
): Promise<Bulk> {
  // What was tried again goes on by that, and would be tried twice.
  const which = { ...filter, status: statusOf(filter, ["failed", "cancelled"], ["failed"]), retried: false };
  return each(engine, tenant, which, options, (tx, id) => retryJob(tx, id));
}

function statusOf(filter: JobFilter, fit: readonly JobStatus[], usual: readonly JobStatus[]): readonly JobStatus[] {
  // First: what is no filter has no status, and would mean all of them.
  checkJobFilter(filter);
  const { status, retried, limit, after } = filter;
  if ((limit ?? after ?? retried) !== undefined) {
    throw invalid("a bulk command takes all that its filter fits: leave out limit, after and retried");
  }
  if (status === undefined) return usual;
  const asked = [status].flat();
  const other = asked.find((each) => !fit.includes(each));
  if (other === undefined && asked.length > 0) return asked;
  throw invalid(`status is ${quote(other)}: give some of ${fit.join(", ")}`);
}

async function each(
  { store }: Engine,
  tenant: string,
  filter: JobFilter,
  options: BulkOptions,
  act: (tx: Tx, id: string) => Promise<unknown>,
): Promise<Bulk> {
  refuseUnknownOfAll(options, { fields: ["signal", "progress"], flags: ["dryRun"] }, "a bulk command");
  const { signal, progress, dryRun = false } = options;
  const total = await countJobs(store, tenant, filter);
  if (dryRun) return { dryRun, count: total, passed: 0, stopped: false };
  let [count, passed, after] = [0, 0, Number.MAX_SAFE_INTEGER];
  while (signal?.aborted !== true) {
    const found = await listIds(store, tenant, filter, { after, limit: sliceMax });
    const last = found.at(-1);
    if (last === undefined) return { dryRun, count, passed, stopped: false };
    const done = await Promise.all(found.map(({ id }) => tryOne((tx) => act(tx, id))));
    count += done.filter(Boolean).length;
    passed += done.filter((each) => !each).length;
    after = last.seq;
    progress?.(count + passed, Math.max(total, count + passed));
  }
  return { dryRun, count, passed, stopped: true };

  async function tryOne(unit: (tx: Tx) => Promise<unknown>): Promise<boolean> {
    try {
      await store.write(unit, { tenant });
      return true;
    } catch (error) {
      // Between the list and the command a job ends, goes on or leaves.
      if (isDaybookError(error) && (error.code === "conflict" || error.code === "not_found")) return false;
      throw error;
    }
  }
}
