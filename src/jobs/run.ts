// Run: one execution of one claimed job's handler, from its params to its ending. Nothing here touches the database;
// the worker settles what comes back.
import { afterEither, type Timer } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { DaybookError, describeError } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { withCause } from "../core/cause.ts";
import { adviceOf, advise } from "./advice.ts";
import { inSpan, isTraced, type Traced } from "../telemetry/trace.ts";
import { abortRun, createRunContext, type ContextParts, type RunState } from "./context.ts";
import { validateParams, type AnyJob } from "./define.ts";
import { heardOf } from "./job.ts";
import type { Engine } from "./engine.ts";
import { runsAlone, type Ending } from "./outcome.ts";
import { runAlone } from "./waiters.ts";

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
  // handler ends, or its process does, the run is its own.
  state.onAbort = () => {
    timer?.cancel();
    if (isShutdown(state.abortReason)) return;
    timer = afterEither(clock, graceMs, () => endWithout(), { keepAlive: true });
  };
  const endWithout = (): void => {
    const message = `the handler did not end within ${formatDuration(graceMs)} of its signal, and may still run`;
    state.logs.push({ level: "warn", message, fields: null, at: clock.now() });
    parts.changed(state);
    end(interrupted(engine, state));
  };
  if (timeoutMs !== null) {
    timer = clock.after(timeoutMs, () => abortRun(state, timedOut(timeoutMs)), { keepAlive: true });
  }
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
    const context = createRunContext(state, parts);
    const handler = options.run as (params: unknown, context: unknown) => unknown;
    const work = (): unknown =>
      builtIn === undefined ? handler(params, engine.contextFor(context)) : builtIn.run(engine, params, context);
    const handle = isTraced() ? (): unknown => inSpan(tracedOf(job), work) : work;
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

// Params were valid when they were enqueued; another version of the program may see them differently. They would fail again,
// so the job is given up.
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
export function logRefused(
  { resultRefused }: Pick<Ending, "resultRefused">,
  state: RunState,
  parts: Pick<ContextParts, "now" | "changed">,
): void {
  if (resultRefused == null) return;
  state.logs.push({
    level: "warn",
    message: `the result is not kept: ${resultRefused}`,
    fields: null,
    at: parts.now(),
  });
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

/** How a run that ends now has ended. */
export function endingOf(engine: Engine, state: RunState, status: Ending["status"], kept: Kept = noResult): Ending {
  const { job } = state;
  return {
    seq: job.seq,
    runId: job.run_id,
    job,
    plain: job.group_seq === null && job.kind === null,
    limited: job.limits !== null || job.limit_key !== null,
    lane: job.lane_seq,
    attempt: job.attempt,
    status,
    durationMs: engine.clock.monotonic() - state.startedMs,
    result: kept.result ?? null,
    resultRefused: kept.resultRefused ?? null,
  };
}

const noResult: Kept = { result: null };

export function timedOut(ms: number): DaybookError {
  const details = { cause: "timeout", type: "TimeoutError" };
  return new DaybookError("timeout", `the run took longer than its timeout of ${ms} ms`, { details });
}

export function cancelled(): DaybookError {
  return new DaybookError("closed", "the job was cancelled", { details: { cause: "cancel", type: "CancelledError" } });
}

export function shuttingDown(): DaybookError {
  const details = { cause: "shutdown", type: "ShutdownError" };
  return new DaybookError("closed", "the process is shutting down; the job runs again elsewhere", { details });
}

function isShutdown(reason: DaybookError | undefined): boolean {
  return reason?.details["cause"] === "shutdown";
}

export function ownershipLost(): DaybookError {
  const details = { cause: "lost", type: "LostError" };
  return new DaybookError("closed", "this process was taken for dead and the job was given to another", { details });
}
