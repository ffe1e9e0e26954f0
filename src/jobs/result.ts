// The result of a job, for whoever made it: waits, in any process, until its whole chain has ended. Nothing is polled:
// the job's row says that somebody waits, and whoever ends it wakes them.
import { DaybookError, invalid, notFound } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { refuseInsideUnit } from "../storage/unit.ts";
import type { RunRow, RunStatus } from "../telemetry/run.ts";
import type { Enqueued } from "./enqueue.ts";
import { hostChannel, jobsChannel, statusNow, type JobRow } from "./job.ts";
import { offerFreeKeys } from "./let-in.ts";
import { reasonOf } from "./park.ts";
import { awaitEnd, awaitMs, refuseToBlock, type AwaitOptions } from "./waiters.ts";

/** What an enqueue made, and the way to its result. */
export type AwaitableJob<Result = unknown> = Enqueued<Result> & {
  /** Waits until the job has ended with all its retries, and gives what its handler returned. Throws when it failed or was
   *  cancelled. Not inside a transaction, because the job begins only after it.
   *
   *  ```ts
   *  const made = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
   *  await book.startWorker();
   *  const orderId = await made.result({ timeout: "30s" });
   *  ``` */
  result(options?: AwaitOptions): Promise<Result>;
};

/** Gives `made` its way to the result. It does not show when it is compared, copied or written as JSON. */
export function awaitable<Result>(store: Store, tenant: string, made: Enqueued): AwaitableJob<Result> {
  const result = (options?: AwaitOptions): Promise<unknown> => awaitResult(store, tenant, made.id, options);
  return Object.defineProperty(made, "result", { value: result }) as AwaitableJob<Result>;
}

export async function awaitResult(
  store: Store,
  tenant: string,
  job: string | Pick<Enqueued, "id">,
  options: AwaitOptions = {},
): Promise<unknown> {
  refuseInsideUnit("result", store, "wait after it, because the job begins only then");
  const id = typeof job === "string" ? job : job?.id;
  if (typeof id !== "string") throw invalid(`${quote(job)} is not a job: give its id, or what enqueue returned`);
  const what = `job ${id}`;
  return awaitEnd(store, what, awaitMs(options, "result"), async (waited) => {
    const last = await lastOfChain(store, tenant, id);
    if (last.finished_at !== null) return { ended: resultOf(last) };
    await refuseToBlock(store, { tenant, what, which: sql`job.seq = ${last.seq}` });
    if (waited !== undefined) throw tookTooLong(id, last, waited);
    // What ended before the mark was made is looked at again: its retry may be open.
    if (last.awaited === 0 && !(await markAwaited(store, last.seq))) return "again";
    return { waitsFor: { job: last.seq } };
  });
}

type Last = Pick<JobRow, "seq" | "id" | "name" | "status" | "finished_at" | "awaited" | "run_id"> &
  Pick<RunRow, "error_type" | "error_message" | "result"> & {
    readonly run_status: RunStatus | null;
    readonly result_refused: string | null;
  };

async function lastOfChain(store: Store, tenant: string, id: string): Promise<Last> {
  const [row] = await store.read<Last>(sql`with recursive chain (seq) as (
      select seq from daybook_job where tenant_id = ${tenant} and id = ${id}
      union all select job.seq from chain join daybook_job job on job.retry_of = chain.seq
    )
    select job.seq, job.id, job.name, ${statusNow} as status,
      case when line.seq is null then coalesce(run.ended_at, job.cancelled_at) end as finished_at,
      coalesce(line.awaited, 0) as awaited, run.id as run_id, run.status as run_status,
      run.error_type, run.error_message, run.result, run.result_refused
    from daybook_job job left join daybook_line line on line.seq = job.seq
    left join daybook_run run on run.job_seq = job.seq
    where job.seq = (select max(seq) from chain)`);
  if (row === undefined) throw notFound(`there is no job ${id}`, { id });
  return row;
}

// The mark stays when somebody stops waiting: others may not have, and it costs the end no more than a wake. On PostgreSQL a
// claim passes by a row that is locked, so it must look again; and so must who hosts it, or frees the permit that it waits for.
async function markAwaited(store: Store, seq: number): Promise<boolean> {
  const mark = async (tx: Tx): Promise<Marked | undefined> => {
    const [row] = await tx.all<Marked>(sql`update daybook_line set awaited = 1 where seq = ${seq}
      returning status, waits_for, waits_key`);
    if (tx.dialect === "postgres" && row !== undefined && row.status !== "running") tx.wake(jobsChannel);
    if (tx.dialect === "postgres" && row?.waits_for === "host") tx.wake(hostChannel);
    return row;
  };
  const marked = await store.write(mark, { beat: false });
  if (store.dialect === "postgres" && marked?.waits_for === "key") {
    const offer = (tx: Tx): Promise<unknown> => offerFreeKeys(tx, [reasonOf("key", marked.waits_key ?? "")]);
    // Should this fail, the sweep does it.
    await store.write(offer, { beat: false }).catch(() => undefined);
  }
  return marked !== undefined;
}

type Marked = Pick<JobRow, "status" | "waits_for" | "waits_key">;

function resultOf(last: Last): unknown {
  const { id, name, status, run_id: runId, run_status: runStatus, error_type: errorType } = last;
  const refused = (why: string, details: object): DaybookError =>
    new DaybookError("conflict", `job ${id} (${name}) ${why}`, { details: { id, status, runId, ...details } });
  if (status === "completed" && last.result_refused === null) {
    return last.result === null ? undefined : (JSON.parse(last.result) as unknown);
  }
  if (status === "completed") {
    const why = `has completed, but what it returned was not kept: ${last.result_refused}`;
    throw refused(why, { bytesMax: limits.resultBytesMax });
  }
  const why = errorType === null ? "" : `: ${errorType}: ${last.error_message ?? ""}`;
  const ended = status === "failed" ? "has failed" : `was ${status}`;
  throw refused(`${ended}, so it has no result${why}`, { runStatus, errorType });
}

function tookTooLong(id: string, { id: lastId, status }: Last, waited: string): DaybookError {
  const retry = lastId === id ? "" : ` (its retry ${lastId})`;
  const still = `job ${id}${retry} is still ${status} after ${waited} of waiting; it goes on`;
  const details = { id, lastId, status };
  return new DaybookError("timeout", `${still}: ask again later, or see why with explain`, { details });
}
