// What a handler is given besides its params.
import { invalid, type DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/quote.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { checkLevel, toLogLine, type LogLevel, type RunLogRow } from "../../telemetry/log.ts";
import type { ClaimedJob } from "../claim/claim.ts";
import type { Step } from "./step.ts";

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

export type RunState = {
  readonly job: ClaimedJob;
  readonly startedMs: number;
  /** Made when somebody first asks for the signal. */
  controller: AbortController | undefined;
  abortReason: DaybookError | undefined;
  onAbort: (() => void) | undefined;
  progress: { done: number; note: string | null } | undefined;
  logs: LogLine[];
  logged: number;
  /** Set once the run has been ended in the book: by finish, or by somebody else. */
  settled: boolean;
  step: Step<Tx> | undefined;
};

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
