// The result of a job, for its maker: waits, in any process, until its whole chain has ended. Nothing is polled.

import { DaybookError, invalid, isDaybookError, notFound, conflict } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { refuseInsideUnit } from "../storage/unit.ts";
import type { RunStatus } from "../telemetry/run.ts";
import type { Enqueued } from "./enqueue.ts";
import { servesQueue } from "./host.ts";
import { hostChannel, jobsChannel, jobNow, doneChannel, type JobRow } from "./job.ts";
import { offerFreeKeys, reasonOf } from "./wait/park.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { durationMs, formatDuration, type Duration } from "../core/duration.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { anyOf } from "../storage/word.ts";
import { currentCause } from "../core/cause.ts";

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

export async function awaitResult<Result>(
  store: Store,
  tenant: string,
  job: string | Enqueued<Result>,
  options: AwaitOptions = {},
): Promise<NoInfer<Result>> {
  refuseInsideUnit("result", store, "wait after it, because the job begins only then");
  const id = typeof job === "string" ? job : job?.id;
  if (typeof id !== "string") throw invalid(`${quote(job)} is not a job: give its id, or what enqueue returned`);
  const what = `job ${id}`;
  return awaitEnd(store, what, awaitMs(options, "result"), async (waited) => {
    const last = await lastOfChain(store, tenant, id);
    if (last.finished_at !== null) return { ended: resultOf(last) as Result };
    await refuseToBlock(store, { tenant, what, which: sql`job.seq = ${last.seq}` });
    if (waited !== undefined) throw tookTooLong(id, last, waited);
    // What ended before the mark was made is looked at again: its retry may be open.
    if (last.awaited === 0 && !(await markAwaited(store, last.seq))) return "again";
    return { waitsFor: { job: last.seq } };
  });
}

type Last = JobRow &
  Record<"error_type" | "error_message" | "result" | "result_refused", string | null> & {
    readonly run_status: RunStatus | null;
  };

async function lastOfChain(store: Store, tenant: string, id: string): Promise<Last> {
  const [row] = await store.read<Last>(sql`with recursive chain (seq) as (
      select seq from daybook_job where tenant_id = ${tenant} and id = ${id}
      union all select job.seq from chain join daybook_job job on job.retry_of = chain.seq
    )
    select job.*, run.status as run_status, run.error_type, run.error_message, run.result, run.result_refused
    from ${jobNow} left join daybook_run run on run.job_seq = job.seq
    where job.seq = (select max(seq) from chain)`);
  if (row === undefined) throw notFound(`there is no job ${id}`, { id });
  return row;
}

// The mark stays when a caller stops waiting: others may not have, and it costs the end no more than a wake. On PostgreSQL a claim
// passes by a row that is locked, so it must look again; and so must its host, and the release of the permit that it waits for.
async function markAwaited(store: Store, seq: number): Promise<boolean> {
  const mark = async (tx: Tx): Promise<Marked | undefined> => {
    const [row] = await tx.all<Marked>(sql`update daybook_line set awaited = 1 where seq = ${seq}
      returning status, waits_for, waits_key`);
    if (tx.dialect === "postgres" && row !== undefined && row.status !== "running") tx.wake(jobsChannel);
    if (tx.dialect === "postgres" && row?.waits_for === "host") tx.wake(hostChannel);
    return row;
  };
  let marked: Marked | undefined;
  try {
    marked = await store.write(mark, { beat: false });
  } catch (error) {
    // The caller looks again: it finds the mark, or makes it once more.
    if (isDaybookError(error) && error.code === "unknown_outcome") return false;
    throw error;
  }
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

// The callers that wait in this process for jobs or groups to end, or for a queue to be let go. The end of a job that is marked
// `awaited`, of a group or of a reservation wakes `doneChannel`; then one read finds out which of ours have ended, however many
// wait. Each caller looks for itself after that.

export type AwaitOptions = {
  /** How long to wait; default without limit. What is waited for goes on either way. */
  readonly timeout?: Duration;
};

/** The end of a job or of a group; with neither, every end that is told. */
type AwaitedEnd = { readonly job?: number; readonly group?: number };

/** What a look found: the end; what to wait for, and when to look all the same; or nothing that holds, so that it looks again. */
type Look<T> = { readonly ended: T } | { readonly waitsFor: AwaitedEnd; readonly atMostMs?: number } | "again";

/** `what` is undefined while it looks. */
type Waiting = { what: AwaitedEnd | undefined; wake(): void };

type Waiters = ReturnType<typeof newWaiters>;

const newWaiters = () => ({
  all: new Set<Waiting>(),
  /** How many wakes there were. */
  heard: 0,
  /** A read has been asked for and has not begun. */
  asked: false,
  closed: false,
  stopListening: undefined as (() => void) | undefined,
});

const waitersOf = ({ keep }: Store): Waiters => keep("waiters", newWaiters);

/** Every caller looks for itself: something else than an end may have changed what it waits for. */
export function lookAgain(store: Store): void {
  for (const each of waitersOf(store).all) each.wake();
}

/** The book is being closed: every caller is told, and a later one hears it at once. */
export function endWaiting(store: Store): void {
  waitersOf(store).closed = true;
  lookAgain(store);
}

export function awaitMs(options: AwaitOptions, verb: string): number {
  refuseUnknown(options, ["timeout"], verb);
  return options.timeout === undefined ? limits.durationMsMax : durationMs(options.timeout, "timeout");
}

/** Waits for the end of `what`: looks, and again when there is news. Once the time is over `look` is told how long that was, and
 *  throws unless it finds the end. */
export async function awaitEnd<T>(
  store: Store,
  what: string,
  timeoutMs: number,
  look: (waited: string | undefined) => Promise<Look<T>>,
): Promise<T> {
  const waiters = waitersOf(store);
  const waiting: Waiting = { what: undefined, wake: () => undefined };
  let waited: string | undefined;
  const expire = (): void => {
    waited = formatDuration(timeoutMs);
    waiting.wake();
  };
  // It keeps the process alive as well: a caller waits.
  const timer = store.clock.after(timeoutMs, expire, { keepAlive: true });
  waiters.all.add(waiting);
  try {
    for (;;) {
      if (waiters.closed) throw new DaybookError("closed", `the book was closed while waiting for ${what}`);
      // Listening comes first and then the look: an end is seen, or it is heard of.
      waiters.stopListening ??= store.onWake((channel) => {
        if (channel !== doneChannel && channel !== null) return;
        waiters.heard++;
        ask(store, waiters);
      });
      const news = Promise.withResolvers<void>();
      const { heard } = waiters;
      Object.assign(waiting, { what: undefined, wake: news.resolve });
      const found = await look(waited);
      if (found === "again") continue;
      if ("ended" in found) return found.ended;
      waiting.what = found.waitsFor;
      // What was heard while it looked may have been about this; one read for all finds out.
      if (heard !== waiters.heard) ask(store, waiters);
      const atMost = found.atMostMs === undefined ? undefined : store.clock.after(found.atMostMs, news.resolve);
      await news.promise;
      atMost?.cancel();
    }
  } finally {
    timer.cancel();
    waiters.all.delete(waiting);
    if (waiters.all.size === 0) {
      waiters.stopListening?.();
      waiters.stopListening = undefined;
    }
  }
}

// What is woken together is looked for together.
function ask(store: Store, waiters: Waiters): void {
  if (waiters.asked) return;
  waiters.asked = true;
  void store.clock.nextTurn().then(() => tellEnded(store, waiters));
}

async function tellEnded(store: Store, waiters: Waiters): Promise<void> {
  waiters.asked = false;
  const awaited = [...waiters.all].flatMap((each) => (each.what === undefined ? [] : [{ each, what: each.what }]));
  const jobs = awaited.flatMap(({ what }) => what.job ?? []);
  const groups = awaited.flatMap(({ what }) => what.group ?? []);
  // A job has ended when it has left the line. When the read fails, each waiter looks for itself and learns why.
  const rows = await store
    .read<Required<AwaitedEnd>>(sql`select seq as job, null as "group" from daybook_line
        where seq ${anyOf("integer", jobs)}
      union all select null, seq from daybook_job_group where seq ${anyOf("integer", groups)} and status = 'open'`)
    .catch(() => []);
  const [openJobs, openGroups] = [new Set(rows.map(({ job }) => job)), new Set(rows.map(({ group }) => group))];
  for (const { each, what } of awaited) {
    const open = what.job === undefined ? openGroups.has(what.group ?? 0) : openJobs.has(what.job);
    if (!open) each.wake();
  }
}

// A handler may wait for other jobs, and for that they must be able to run meanwhile. Two waits can never end, and are
// refused: for itself, and, in a run that is alone in its session after two losses, for what only this session could run.
type AloneRun = { readonly sessionSeq: number; over: boolean };

const aloneRuns = new AsyncLocalStorage<AloneRun>();

/** Runs the handler of a job that is alone in its session. */
export async function runAlone<T>(sessionSeq: number, handler: () => T): Promise<Awaited<T>> {
  const run: AloneRun = { sessionSeq, over: false };
  try {
    return await aloneRuns.run(run, handler);
  } finally {
    run.over = true;
  }
}

/** `which` are the jobs that are waited for, open ones and others. */
export async function refuseToBlock(
  store: Store,
  { tenant, what, which }: { readonly tenant: string; readonly what: string; readonly which: Sql },
): Promise<void> {
  const cause = currentCause();
  if (cause === undefined) return;
  const [itself] = await store.read<{ id: string }>(sql`select job.id
    from daybook_job job join daybook_line line on line.seq = job.seq
    where ${which} and job.tenant_id = ${tenant} and line.run_id = ${cause.runId}`);
  if (itself !== undefined) {
    throw invalid(`job ${itself.id} waits for ${what}, which cannot end before itself: wait for it from outside`);
  }
  const alone = aloneRuns.getStore();
  if (alone === undefined || alone.over) return;
  const [blocked] = await store.read<Record<"id" | "name" | "queue", string>>(sql`select job.id, job.name, lane.queue
    from daybook_job job join daybook_line line on line.seq = job.seq join daybook_lane lane on lane.seq = job.lane_seq
    where ${which} and job.tenant_id = ${tenant} and job.origin <> 'direct'
      and (line.session_seq is null or line.session_seq = ${alone.sessionSeq})
      and not exists (select 1 from daybook_session_host host join daybook_session session on session.seq = host.session_seq
        where session.status = 'running' and session.seq <> ${alone.sessionSeq} and host.name = job.name
          and (session.tenant_id is null or session.tenant_id = ${tenant}) and ${servesQueue(sql`lane.queue`)}) limit 1`);
  if (blocked === undefined) return;
  const nobody = `nobody else runs job ${blocked.id} ("${blocked.name}" in queue "${blocked.queue}")`;
  const advice = "start another process that runs it; the next attempt is not alone";
  const why = `this run is alone in its process after two losses, and ${nobody}, so ${what} would never end`;
  throw conflict(`${why}: ${advice}`, { ...blocked });
}
