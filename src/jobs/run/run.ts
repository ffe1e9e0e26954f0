// Run: one execution of one claimed job's handler, from its params to its ending. No transaction is open
// meanwhile; the worker settles what comes back, unless the handler calls `finish`.
import { rememberFor } from "../../core/remember.ts";
import { afterEither, type Timer } from "../../core/clock.ts";
import { formatDuration } from "../../core/duration.ts";
import { DaybookError, describeError, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { heardOf, withCause } from "../../core/cause.ts";
import { adviceOf, advise } from "../../core/retry.ts";
import { inSpan, tracing, type Traced } from "../../telemetry/trace.ts";
import { abortRun, isShutdown, RunContext, type ContextParts, type RunState } from "./context.ts";
import { validateParams, type AnyJob } from "../define.ts";
import { jobsChannel } from "../job.ts";
import type { Engine } from "../engine.ts";
import { runsAlone, type Ending } from "../settle/outcome.ts";
import { runAlone } from "../result.ts";
import { killPoint } from "../../core/fact.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { offerFreeKeys } from "../wait/park.ts";
import { permitsOf } from "../claim/limit.ts";
import { gateOf, settle, settleInUserTx } from "../settle/settle.ts";
import { refuseInsideStep } from "./step.ts";

/** How long a handler may take to end after its signal was aborted, before it is recorded as ended without it. */
export const graceMs = 5000;

/** Calls `ended` once, with how the run ended; undefined when `finish` has already settled it. A function and no promise,
 *  because one promise more for each job shows. */
export function run(
  engine: Engine,
  definition: AnyJob,
  state: RunState,
  parts: ContextParts & { ended(state: RunState, ending: Ending | undefined): void },
): void {
  const { clock } = engine;
  const { timeout_ms: timeoutMs } = state.job;
  // It was aborted before it began, so it does not begin.
  if (state.abortReason !== undefined) return parts.ended(state, interrupted(engine, state));
  let timer: Timer | undefined;
  let over = false;
  const end = (ending: Ending): void => {
    timer?.cancel();
    if (over) return;
    over = true;
    parts.ended(state, state.settled ? undefined : ending);
  };
  // A handler that ignores its signal is recorded as ended without it, and the run says so; whatever it does later counts for
  // nothing. When the process shuts down it is not: the job would begin elsewhere while this one still works on it. Until the
  // handler ends, or its process does, or somebody cancels it, or its time is up, the run is its own.
  state.onAbort = () => {
    timer?.cancel();
    // From here on it keeps no process alive.
    if (isShutdown(state.abortReason)) return endInTime({ keepAlive: false });
    timer = afterEither(clock, graceMs, () => endWithout(), { keepAlive: true });
  };
  const endWithout = (): void => {
    const message = `the handler did not end within ${formatDuration(graceMs)} of its signal, and may still run`;
    state.logs.push({ level: "warn", message, fields: null, at: clock.now() });
    parts.changed(state);
    end(interrupted(engine, state));
  };
  const endInTime = (options: { keepAlive: boolean }): void => {
    if (timeoutMs === null) return;
    const leftMs = timeoutMs - (clock.monotonic() - state.startedMs);
    timer = clock.after(leftMs, () => abortRun(state, timedOut(timeoutMs)), options);
  };
  endInTime({ keepAlive: true });
  void execute(engine, definition, state, parts).then(end);
}

async function execute(engine: Engine, definition: AnyJob, state: RunState, parts: ContextParts): Promise<Ending> {
  const { job } = state;
  const ids = { runId: job.run_id, rootRunId: job.root_run_id ?? job.run_id, parentRunId: job.cause_run_id };
  // Nothing is copied that need not be: this runs once for every job.
  const cause = job.about === null ? ids : { ...ids, ...heardOf(job) };
  try {
    const parsed: unknown = JSON.parse(job.params);
    const { options, builtIn } = definition;
    const checked = options.params !== undefined || builtIn?.check !== undefined;
    const params = checked ? await checkParams(definition, parsed) : parsed;
    const context = new RunContext(state, parts);
    const handler = options.run as (params: unknown, context: unknown) => unknown;
    const work = (): unknown =>
      builtIn === undefined ? handler(params, engine.contextFor(context)) : builtIn.run(engine, params, context);
    const handle = tracing.api === undefined ? work : (): unknown => inSpan(tracedOf(job), work);
    const result = await withCause(cause, runsAlone(job) ? () => runAlone(engine.session().seq, handle) : handle);
    const kept = resultJson(result);
    // What finish has settled, it has said by itself.
    if (!state.settled) logRefused(kept, state, parts);
    return endingOf(engine, state, "success", kept);
  } catch (thrown) {
    if (state.abortReason !== undefined) return interrupted(engine, state, thrown);
    return { ...endingOf(engine, state, "error"), error: describeError(thrown), advice: adviceOf(thrown) };
  }
}

function tracedOf({ name, kind, run_id: runId, tenant_id: tenant, attempt, traceparent }: RunState["job"]): Traced {
  return { name, kind: kind ?? "job", runId, tenant, attempt, traceparent };
}

// Params were valid when they were enqueued. Where another version of the program refuses them they would fail again: given up.
async function checkParams(definition: AnyJob, params: unknown): Promise<unknown> {
  try {
    return await validateParams(definition, params);
  } catch (cause) {
    const error = new Error(describeError(cause).message, { cause });
    error.name = "DependencyError";
    throw advise(error, { again: false });
  }
}

/** What a handler returns is kept if it is JSON of a fair size. If not, the work is done all the same: failing it would do it
 *  again. The run says what was wrong, to its readers and to whoever waits for the result. */
export function resultJson(result: unknown): Kept {
  if (result === undefined) return noResult;
  try {
    return { result: toJson(result, { what: "result", bytesMax: limits.resultBytesMax }) };
  } catch (error) {
    return { result: null, resultRefused: describeError(error).message };
  }
}

/** Writes into the run's log that its result was not kept. */
function logRefused({ resultRefused }: Kept, state: RunState, parts: Noting): void {
  if (resultRefused == null) return;
  const message = `the result is not kept: ${resultRefused}`;
  state.logs.push({ level: "warn", message, fields: null, at: parts.now() });
  parts.changed(state);
}

/** The ending of a run whose signal was aborted: what aborted it says more than what the handler made of it. */
export function interrupted(engine: Engine, state: RunState, thrown?: unknown): Ending {
  const reason = state.abortReason ?? timedOut(0);
  const cause = reason.details["cause"];
  const status = cause === "timeout" ? "timed_out" : "cancelled";
  const { message } = describeError(thrown ?? reason);
  const error = {
    type: reason.details["type"] as string,
    message: status === "timed_out" ? reason.message : message,
    trace: null,
  };
  return { ...endingOf(engine, state, status), error, shutdown: isShutdown(reason) };
}

type Kept = Pick<Ending, "result" | "resultRefused">;
type Noting = Pick<ContextParts, "now" | "changed">;

/** How a run that ends now has ended. */
export function endingOf(engine: Engine, state: RunState, status: Ending["status"], kept: Kept = noResult): Ending {
  const { job } = state;
  return {
    seq: job.seq,
    runId: job.run_id,
    job,
    status,
    durationMs: engine.clock.monotonic() - state.startedMs,
    result: kept.result ?? null,
    resultRefused: kept.resultRefused ?? null,
  };
}

const noResult: Kept = { result: null };

/** Why a run is asked to end, as its signal says it. */
function abortedBy(cause: string, type: string, message: string): DaybookError {
  return new DaybookError(cause === "timeout" ? "timeout" : "closed", message, { details: { cause, type } });
}

export function timedOut(ms: number): DaybookError {
  return abortedBy("timeout", "TimeoutError", `the run took longer than its timeout of ${ms} ms`);
}

export function cancelled(): DaybookError {
  return abortedBy("cancel", "CancelledError", "the job was cancelled");
}

export function shuttingDown(): DaybookError {
  return abortedBy("shutdown", "ShutdownError", "the process is shutting down; the job runs again elsewhere");
}

export function ownershipLost(): DaybookError {
  return abortedBy("lost", "LostError", "this process was taken for dead and the job was given to another");
}

/** finish: the handler's effects and the completion of its job are one commit. Killed at any point, either both are in the book
 *  or neither is, and then the job is tried again. */
export async function finishRun<T>(
  engine: Engine,
  state: RunState,
  parts: Noting,
  work: (tx: Tx) => Awaitable<T>,
): Promise<T> {
  const { job } = state;
  refuseInsideStep(state, "finish");
  if (state.settled) throw invalid(`job ${job.id} has been finished already: call finish once, as the last thing`);
  let kept: ReturnType<typeof resultJson> = {};
  const serializable = engine.store.dialect === "postgres";
  const result = await engine.store.write(
    async (tx) => {
      const made = await work(tx);
      killPoint("jobs.finish.worked");
      kept = resultJson(made);
      const ending = { ...endingOf(engine, state, "success", kept), job };
      const ours = serializable
        ? await settleInUserTx(tx, engine, ending)
        : (await settle(tx, engine, [ending])).late.size === 0;
      if (!ours) {
        throw new DaybookError(
          "conflict",
          `job ${job.id} is no longer this process's, so nothing of finish was kept: it was cancelled, timed out or lost`,
          { details: { id: job.id } },
        );
      }
      killPoint("jobs.finish.settled");
      return made;
    },
    // That others kept getting in the way is no failure of the job, and its effects outside must not be repeated.
    { by: "user", tenant: job.tenant_id, tryOn: () => state.abortReason === undefined },
  );
  killPoint("jobs.finish.committed");
  state.settled = true;
  logRefused(kept, state, parts);
  // Awaited as part of the run: a worker is idle only once those who waited for it have been let in.
  if (serializable) await followerOf(engine)(job);
  return result;
}

type Finished = RunState["job"];

/** Does for those who wait what the transaction of a finish leaves to be done. Whatever finishes meanwhile is done together. */
const followerOf = rememberFor((engine: Engine) => gathered((jobs: readonly Finished[]) => letOthersIn(engine, jobs)));

function gathered<T>(work: (all: readonly T[]) => Promise<void>): (one: T) => Promise<void> {
  let waiting: T[] = [];
  let next: Promise<void> | undefined;
  let last = Promise.resolve();
  return (one) => {
    waiting.push(one);
    return (next ??= last.then(() => {
      const all = waiting;
      waiting = [];
      next = undefined;
      // Should it fail, the sweep does it.
      return (last = work(all).catch(() => undefined));
    }));
  };
}

async function letOthersIn({ store, kinds }: Engine, jobs: readonly Finished[]): Promise<void> {
  const limited = jobs.filter((job) => job.limits !== null);
  const gated = limited.length > 0 || (await store.read(gateOf(jobs.map((job) => job.lane_seq)))).length > 0;
  if (!gated) return;
  await store.write(async (tx) => {
    await offerFreeKeys(tx, limited.flatMap(permitsOf));
    for (const job of limited) if (job.kind !== null) await kinds[job.kind]?.finished?.(tx, job);
    // Whoever found a limit locked by us left its jobs in line; and a place may be free in a lane that has few, or is reserved.
    tx.wake(jobsChannel);
  });
}
