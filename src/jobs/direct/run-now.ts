// Direct execution: the caller's own job comes next in a queue, before everything that stands in line, and its result goes
// back to the caller. The lane is reserved, what runs there is waited for, the job runs in this process, and the queue
// goes on in its order. There is no automatic retry: the caller is told.
import { durationMs, formatDuration, type Duration } from "../../core/duration.ts";
import { DaybookError, invalid, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkWord, refuseUnknown } from "../../core/suggest.ts";
import type { Tx } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import { cancelJob } from "../settle/cancel.ts";
import { prepareJob, type AnyJob, type Given, type Job, type EnqueueOptions, type Prepared } from "../define.ts";
import type { Engine } from "../engine.ts";
import { newJob, insertJobs } from "../enqueue.ts";
import { closeLane, laneOf } from "../claim/lane.ts";
import { awaitResult } from "../result.ts";
import { startWorker, type Worker } from "../worker/start-worker.ts";
import {
  directKind,
  refusedBy,
  releaseReservation,
  renewReservation,
  reserveLane,
  waitForTurn,
} from "./reservation.ts";
import type { Reserved, Refused, ReservationRow } from "./reservation.ts";
import { sql } from "../../storage/sql.ts";

export type RunNowOptions = Pick<EnqueueOptions, "queue" | "tags"> & {
  /** When somebody else holds the queue: wait for them, or be told at once; default `wait`. */
  readonly onBusy?: "wait" | "reject";
  /** How long the caller waits in all, for its turn and for the result; what has not ended then is cancelled. */
  readonly timeout?: Duration;
};

export type RunNowParts = {
  readonly engine: Engine;
  readonly tenant: string;
  /** Closing the book stops those that have joined. */
  join(worker: Worker): void;
  leave(worker: Worker): void;
  readonly grace: Duration | undefined;
};

export type DirectVerbs = {
  /** Runs a job here and now, before everything that stands in line in its queue, and gives its result. What runs in the
   *  queue ends first, nothing else of it starts meanwhile, and its order stays. A failure is thrown, not retried.
   *
   *  ```ts
   *  const orderId = await book.jobs.runNow(sendReceipt, { orderId: "o-17" }, { timeout: "1m" });
   *  ``` */
  runNow<Input, Result>(
    definition: Job<Input, Result> | string,
    ...given: Given<NoInfer<Input>, RunNowOptions>
  ): Promise<NoInfer<Result>>;
};

export async function runNow<Result>(
  parts: RunNowParts,
  definition: AnyJob,
  params: unknown,
  options: RunNowOptions = {},
): Promise<NoInfer<Result>> {
  const { engine, tenant } = parts;
  const { store, clock } = engine;
  refuseInsideUnit("runNow", store, "run it after it, because it has transactions of its own");
  refuseUnknown(options, ["queue", "tags", "onBusy", "timeout"], "runNow");
  const { onBusy = "wait", timeout, ...rest } = options;
  checkWord(onBusy, ["wait", "reject"], "onBusy");
  const timeoutMs = timeout === undefined ? limits.durationMsMax : durationMs(timeout, "timeout");
  const startedMs = clock.monotonic();
  const prepared = await prepareJob(definition, params, { ...rest, attempts: 1, losses: 0 });
  const wait = onBusy === "wait" ? timeoutMs : 0;
  const turn = await waitForTurn(store, wait, () => ask(engine, tenant, prepared));
  const renew = async (): Promise<void> =>
    void (await store.write((tx) => renewReservation(tx, turn.id, engine.session().seq), { tenant }));
  const settings = { concurrency: 1, ...(parts.grace === undefined ? {} : { grace: parts.grace }) };
  let worker: Worker | undefined;
  try {
    await startWorker(engine, settings, { ...turn, renew }, (made) => parts.join((worker = made)));
    const left = Math.max(1, Math.ceil(timeoutMs - (clock.monotonic() - startedMs)));
    return await awaitResult<Result>(store, tenant, turn.jobId, timeout === undefined ? {} : { timeout: left });
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "timeout") throw error;
    // The caller waits no more. The job may have ended in the meantime.
    await store.write((tx) => cancelJob(tx, engine, turn.jobId), { tenant }).catch(() => undefined);
    const message = `job ${turn.jobId} (${prepared.name}) had not ended after ${formatDuration(timeoutMs)} and is cancelled`;
    throw new DaybookError("timeout", message, { details: error.details });
  } finally {
    await worker?.stop();
    // A handler that ignores its signal works on, so no other job may begin in its queue.
    if (worker !== undefined && worker.running > 0) void worker.ended().then(letGo);
    else await letGo();
  }

  async function letGo(): Promise<void> {
    if (worker !== undefined) parts.leave(worker);
    // Not ours any more when others took this session for dead; then they have ended it.
    await store
      .write((tx) => releaseReservation(tx, engine, turn.id, engine.session().seq), { tenant })
      .catch(() => undefined);
  }
}

type Turn = Reserved & { readonly jobId: string };

async function ask(engine: Engine, tenant: string, prepared: Prepared): Promise<Turn | Refused> {
  const { store } = engine;
  let asked: Turn | Refused | undefined;
  try {
    return await store.write(async (tx) => (asked = await reserveFor(tx, engine, prepared)), { tenant });
  } catch (error) {
    // Whether the lane is held now is not known: if it is, no worker serves it, and it would stand still until the reservation expires.
    if (asked !== undefined && "jobId" in asked && isDaybookError(error) && error.code === "unknown_outcome") {
      const { id, laneSeq } = asked;
      const giveBack = async (tx: Tx): Promise<void> => {
        await closeLane(tx, laneSeq); // it may be committing just now
        await releaseReservation(tx, engine, id, engine.session().seq);
      };
      await store.write(giveBack, { tenant }).catch(() => undefined);
    }
    throw error;
  }
}

/** Reserves the lane and makes the job that waits for it, or says which session holds it. */
export async function reserveFor(tx: Tx, engine: Engine, prepared: Prepared): Promise<Turn | Refused> {
  const lane = await laneOf(tx, tx.tenant, prepared.queue);
  await refuseFromItself(tx, lane, prepared);
  const note = `direct: ${prepared.name}`;
  const row = newJob(tx, lane, prepared);
  const wanted = { lane, sessionSeq: engine.session().seq, note, jobId: row.id };
  const asked = await reserveLane(tx, engine, wanted);
  if (!("made" in asked)) {
    const own = await holdsByHand(tx, engine, asked.holder);
    const refused = await refusedBy(tx, prepared.queue, asked.holder, own);
    if (own) throw refused.refusal;
    return refused;
  }
  const { id, seq } = asked.made;
  const waits = { status: "waiting", waits_for: "reservation", waits_key: id } as const;
  await insertJobs(tx, [{ ...row, ...waits, origin: "direct", kind: directKind, kind_seq: seq }]);
  const made = await tx.get<{ seq: number }>(sql`select seq from daybook_job
    where tenant_id = ${tx.tenant} and id = ${row.id}`);
  return { id, jobId: row.id, jobSeq: made?.seq ?? 0, laneSeq: lane };
}

// This process reserved the queue itself, for no direct work: it would wait for itself.
async function holdsByHand(tx: Tx, engine: Engine, holder: ReservationRow | undefined): Promise<boolean> {
  if (holder === undefined || holder.session_seq !== engine.session().seq) return false;
  const direct = await tx.get(sql`select seq from daybook_line
    where kind = ${directKind} and kind_seq = ${holder.seq}`);
  return direct === undefined;
}

// The caller is a job of that very queue, which would have to end before what it waits for can begin.
async function refuseFromItself(tx: Tx, lane: number, { queue, cause }: Prepared): Promise<void> {
  if (cause === undefined) return;
  const caller = await tx.get<{ id: string }>(sql`select job.id
    from daybook_line line join daybook_job job on job.seq = line.seq
    where line.status = 'running' and line.lane_seq = ${lane} and line.run_id = ${cause.runId}`);
  if (caller === undefined) return;
  throw invalid(`job ${caller.id} runs in queue "${queue}" and cannot run direct work there: name another queue`);
}
