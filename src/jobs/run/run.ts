// Run: one execution of one claimed job's handler, from its params to its ending. No transaction is open
// meanwhile; the worker settles what comes back, unless the handler calls `finish`.
import { afterEither, type Timer } from "../../core/clock.ts";
import { formatDuration } from "../../core/duration.ts";
import { DaybookError, describeError, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { heardOf, withCause } from "../../core/cause.ts";
import { adviceOf, advise } from "../../core/retry.ts";
import { inSpan, tracing, type Traced } from "../../telemetry/trace.ts";
import { validateParams, type AnyJob } from "../define.ts";
import type { Engine } from "../engine.ts";
import { runsAlone, type ClaimedJob } from "../claim/claim.ts";
import type { Ending } from "../settle/settle.ts";
import { runAlone } from "../result.ts";
import { storableText } from "../../core/quote.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { checkLevel, toLogLine, type LogLevel, type RunLogRow } from "../../telemetry/log.ts";
import type { Step } from "./step.ts";

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
  // handler ends, or its process does, or a user cancels it, or its time is up, the run is its own.
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
  const made = job.about === null ? ids : { ...ids, ...heardOf(job) };
  const cause =
    definition.owner === undefined ? made : { ...made, late: (error: unknown) => failLate(state, parts, error) };
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
    const advice = adviceOf(thrown);
    if (advice?.skip === true) {
      return { ...endingOf(engine, state, "skipped"), error: { ...describeError(thrown), trace: null } };
    }
    return { ...endingOf(engine, state, "error"), error: describeError(thrown), advice };
  }
}

// Its run is written, or about to be, and does not change any more.
function failLate(state: RunState, parts: ContextParts, error: unknown): void {
  const { type, message, trace } = describeError(error);
  const line = toLogLine(`after its handler had ended: ${type}: ${message}`, { trace }, "error");
  state.logs.push({ ...line, at: parts.now() });
  parts.changed(state);
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
 *  again. The run says what was wrong, to its readers and to a caller that waits for the result. */
export function resultJson(result: unknown): Kept {
  if (result === undefined) return noResult;
  try {
    return { result: toJson(result, { what: "result", bytesMax: limits.resultBytesMax }) };
  } catch (error) {
    return { result: null, resultRefused: describeError(error).message };
  }
}

/** Writes into the run's log that its result was not kept. */
export function logRefused({ resultRefused }: Kept, state: RunState, parts: Noting): void {
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
export type Noting = Pick<ContextParts, "now" | "changed">;

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

export function shuttingDown(why = "the process is shutting down"): DaybookError {
  return abortedBy("shutdown", "ShutdownError", `${why}; the job runs again elsewhere`);
}

export function ownershipLost(): DaybookError {
  return abortedBy("lost", "LostError", "this process was taken for dead and the job was given to another");
}

export type JobInfo = {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly tenant: string;
  readonly runId: string;
  readonly createdAt: number;
  readonly tags: readonly string[];
};

export type LogLine = Pick<RunLogRow, "level" | "message" | "fields"> & { at: number };

export type RunState = ReturnType<typeof newRun>;

export function newRun(job: ClaimedJob, startedMs: number) {
  return {
    job,
    startedMs,
    /** Made when the handler first asks for the signal. */
    controller: undefined as AbortController | undefined,
    abortReason: undefined as DaybookError | undefined,
    onAbort: undefined as (() => void) | undefined,
    progress: undefined as { done: number; note: string | null } | undefined,
    logs: [] as LogLine[],
    logged: 0,
    /** Set once the run has been ended in the book: by finish, or by another process. */
    settled: false,
    step: undefined as Step<Tx> | undefined,
  };
}

export type ContextParts = {
  now(): number;
  /** Something about the run should be written soon. */
  changed(state: RunState): void;
  finish<T>(state: RunState, work: (tx: Tx) => Awaitable<T>): Promise<T>;
  step(state: RunState): Step<Tx>;
};

/** Made once for every run, so what most handlers never ask for is made when it is asked for. */
export class RunContext {
  readonly #state: RunState;
  readonly #parts: ContextParts;

  constructor(state: RunState, parts: ContextParts) {
    this.#state = state;
    this.#parts = parts;
  }

  get job(): JobInfo {
    const { id, name, queue, tenant_id: tenant, run_id: runId, created_at: createdAt, tags } = this.#state.job;
    return { id, name, queue, tenant, runId, createdAt, tags: tags === null ? [] : (JSON.parse(tags) as string[]) };
  }

  /** What the room that made the job tells its handler. */
  get about(): unknown {
    return JSON.parse(this.#state.job.about ?? "{}") as unknown;
  }

  /** Counts from 1; a lost process is not counted. */
  get attempt(): number {
    return this.#state.job.attempt;
  }

  get attempts(): number {
    return this.#state.job.attempts;
  }

  /** Aborted when the run should end: its timeout, a cancel, a shutdown, or because the job is no longer this
   *  process's. `signal.reason` is a DaybookError that says which. */
  get signal(): AbortSignal {
    const state = this.#state;
    state.controller ??= new AbortController();
    if (state.abortReason !== undefined) state.controller.abort(state.abortReason);
    return state.controller.signal;
  }

  /** How far the work is, from 0 to 1, with a word about it. */
  get progress(): (done: number, note?: string) => void {
    return (done, note) => {
      if (!(done >= 0 && done <= 1)) throw invalid(`progress ${done} is not between 0 and 1`);
      const text = note === undefined ? null : storableText(note, limits.progressNoteBytesMax);
      this.#state.progress = { done, note: text };
      this.#parts.changed(this.#state);
    };
  }

  /** A line that is kept with the run. */
  get log(): (message: string, fields?: Record<string, unknown>, level?: LogLevel) => void {
    return (message, fields, level = "info") => {
      checkLevel(level, "log level");
      const state = this.#state;
      if (state.logged++ >= limits.logLinesMax) return;
      state.logs.push({ ...toLogLine(message, fields, level), at: this.#parts.now() });
      this.#parts.changed(state);
    };
  }

  /** Runs `work` and completes the job in one transaction, with `result` as its result. */
  get finish(): <T>(work: (tx: Tx) => Awaitable<T>) => Promise<T> {
    return (work) => this.#parts.finish(this.#state, work);
  }

  /** Runs a part of the work and keeps its result for the next runs of the chain. */
  get step(): Step<Tx> {
    return (this.#state.step ??= this.#parts.step(this.#state));
  }
}

export function isShutdown(reason: DaybookError | undefined): boolean {
  return reason?.details["cause"] === "shutdown";
}

/** Asks a run to end. The reason is what its signal says. A run that ignores a shutdown may still be cancelled, or time out. */
export function abortRun(state: RunState, reason: DaybookError): void {
  if (state.abortReason !== undefined && !isShutdown(state.abortReason)) return;
  state.abortReason = reason;
  state.controller?.abort(reason);
  state.onAbort?.();
}
