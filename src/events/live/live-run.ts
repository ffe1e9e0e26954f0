// One run of a live handler, from its event to its row. A run that was aborted is recorded as cancelled or timed out, whatever
// its handler returns or throws after that.
import { currentCause, withCause, type Cause } from "../../core/cause.ts";
import { afterEither, type Clock, type Timer } from "../../core/clock.ts";
import { DaybookError, describeError, type ErrorDescription } from "../../core/error.ts";
import { defineFact } from "../../core/fact.ts";
import type { Ids } from "../../core/id.ts";
import { isThenable } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { checkLevel, toLogLine, type LogLevel } from "../../telemetry/log.ts";
import type { RunWriter } from "../../telemetry/run-writer.ts";
import type { RunStatus } from "../../telemetry/run.ts";
import type { SessionKey } from "../../telemetry/session.ts";
import { inSpan } from "../../telemetry/trace.ts";
import type { LiveEvent } from "../event.ts";
import type { LiveDefinition } from "./define.ts";

export type LiveRunEnded = {
  readonly tenant: string;
  readonly name: string;
  readonly runId: string;
  readonly topic: string;
  readonly status: RunStatus;
  readonly durationMs: number;
  readonly error: { readonly type: string; readonly message: string } | null;
};

/** A run of a live listener has ended, or an event that waited was skipped. */
export const liveRunEnded = defineFact<LiveRunEnded>("live.run_ended");

export type LiveParts = {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly writer: RunWriter;
  readonly session: () => SessionKey;
  /** What a handler gets besides the payload; the front door adds the book. */
  readonly contextFor: (run: LiveRun) => LiveContext;
};

export class LiveRun {
  readonly id: string;
  readonly event: LiveEvent;
  readonly definition: LiveDefinition;
  readonly #parts: LiveParts;
  readonly #startedAt: number;
  readonly #startedMs: number;
  readonly #onEnd: (run: LiveRun) => void;
  #controller: AbortController | undefined;
  #reason: DaybookError | undefined;
  #timer: Timer | undefined;
  #logged = 0;
  #ended = false;

  constructor(parts: LiveParts, definition: LiveDefinition, event: LiveEvent, onEnd: (run: LiveRun) => void) {
    this.#parts = parts;
    this.definition = definition;
    this.event = event;
    this.#onEnd = onEnd;
    this.id = parts.ids();
    this.#startedAt = parts.clock.now();
    this.#startedMs = parts.clock.monotonic();
  }

  /** Calls the handler. Never throws. A handler that awaits nothing has ended when this returns. */
  begin(): void {
    const { timeoutMs, run, name } = this.definition;
    const { tenant, payload } = this.event;
    if (timeoutMs !== null) {
      this.#timer = this.#parts.clock.after(timeoutMs, () => this.abort(timedOut(timeoutMs)));
    }
    this.#parts.writer.open.add(this);
    try {
      const handler = run as (payload: unknown, context: LiveContext) => unknown;
      const traced = { name, kind: "listener", runId: this.id, tenant, attempt: 1, traceparent: null };
      const result = withCause(causeOf(this), () =>
        inSpan(traced, () => handler(payload, this.#parts.contextFor(this))),
      );
      if (isThenable(result)) {
        Promise.resolve(result).then(
          () => this.#end("success"),
          (error: unknown) => this.fail(error),
        );
      } else this.#end("success");
    } catch (error) {
      this.fail(error);
    }
  }

  /** Asks the handler to end. If it has not ended after a grace period, the run is recorded as ended all the same. */
  abort(reason: DaybookError): void {
    if (this.#ended || this.#reason !== undefined) return;
    this.#reason = reason;
    this.#timer?.cancel();
    const end = (): void => this.#end("cancelled");
    this.#timer = afterEither(this.#parts.clock, limits.liveGraceMs, end, { keepAlive: true });
    this.#controller?.abort(reason);
  }

  /** Records that it failed, perhaps before its handler began. */
  fail(error: unknown): void {
    this.#end("error", describeError(error));
  }

  /** Records that it never began: its listener was stopped while the event waited for its time. */
  skip(waits: "debounce" | "for"): void {
    const message = `the listener was stopped while the event waited (${waits}), so it did not act on it`;
    this.#end("skipped", { type: "ShutdownError", message, trace: null });
  }

  /** The process is about to end with an error, which is this run's if its code threw it. */
  crashed(error: ErrorDescription): void {
    if (currentCause()?.runId === this.id) return this.#end("error", error);
    this.#end("lost", { type: "LostError", message: "its process ended with an uncaught exception", trace: null });
  }

  /** Records an error that came after it had ended, as a run of its own that this one caused. */
  failLate(error: unknown): void {
    const event = { ...this.event, causeRunId: this.id, rootRunId: this.event.rootRunId ?? this.id };
    new LiveRun(this.#parts, this.definition, event, () => undefined).fail(error);
  }

  /** Every run has a signal, so it is made only when the handler asks for it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  log(message: string, fields?: Record<string, unknown>, level: LogLevel = "info"): void {
    checkLevel(level, "log level");
    if (this.#logged++ >= limits.logLinesMax) return;
    const { clock, writer } = this.#parts;
    const line = toLogLine(message, fields, level);
    writer.log({ tenant_id: this.event.tenant, run_id: this.id, logged_at: clock.now(), ...line });
  }

  #end(how: RunStatus, thrown: ErrorDescription | null = null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer?.cancel();
    const { clock, writer, session } = this.#parts;
    writer.open.delete(this);
    const { event } = this;
    const durationMs = Math.max(0, clock.monotonic() - this.#startedMs);
    // The reason for the abort says more than what the aborted handler threw.
    const error = this.#reason === undefined ? thrown : describe(this.#reason);
    const { name, owner } = this.definition;
    const status = this.#reason === undefined ? how : this.#reason.code === "timeout" ? "timed_out" : "cancelled";
    writer.ended({
      tenant_id: event.tenant,
      id: this.id,
      kind: "listener",
      name,
      session_seq: session().seq,
      attempt: 1,
      started_at: this.#startedAt,
      // By the monotonic clock: a step of the wall clock must not make a run end before it began.
      ended_at: this.#startedAt + Math.round(durationMs),
      duration_ms: durationMs,
      status,
      error_type: error?.type ?? null,
      error_message: error?.message ?? null,
      error_trace: error?.trace ?? null,
      cause_run_id: event.causeRunId,
      root_run_id: event.rootRunId,
      event_id: event.id,
      topic: event.topic,
      ...owner,
    });
    if (liveRunEnded.heard) {
      const said = error === null ? null : { type: error.type, message: error.message };
      liveRunEnded.state({
        tenant: event.tenant,
        name,
        runId: this.id,
        topic: event.topic,
        status,
        durationMs,
        error: said,
      });
    }
    this.#onEnd(this);
  }
}

// Rows that the handler makes carry its run's id, and events that it publishes continue the chain of the event it heard.
function causeOf(run: LiveRun): Cause {
  const { id: runId, event } = run;
  const { rootRunId, chainDepth: depth, stored } = event;
  const cause = { runId, rootRunId: rootRunId ?? runId, depth, late: (error: unknown) => run.failLate(error) };
  return stored === null ? cause : { ...cause, event: { ...stored, depth } };
}

function describe({ details, message }: DaybookError): ErrorDescription {
  return { type: String(details["type"]), message, trace: null };
}

function timedOut(ms: number): DaybookError {
  const details = { cause: "timeout", type: "TimeoutError" };
  return new DaybookError("timeout", `the run took longer than its timeout of ${ms} ms`, { details });
}

export function restarted(): DaybookError {
  const details = { cause: "restart", type: "CancelledError" };
  return new DaybookError("closed", "a newer event came, and the listener begins again with it", { details });
}

export function noLongerListening(): DaybookError {
  const details = { cause: "shutdown", type: "ShutdownError" };
  return new DaybookError("closed", "the listener was detached or its book is closing", { details });
}

/** What a live handler gets besides the payload. Its getters return free functions, so a handler may destructure it:
 *  `(payload, { log, signal }) => …`. */
export class LiveContext {
  readonly #run: LiveRun;

  constructor(run: LiveRun) {
    this.#run = run;
  }

  get event(): LiveEvent {
    return this.#run.event;
  }

  get listener(): string {
    return this.#run.definition.name;
  }

  get runId(): string {
    return this.#run.id;
  }

  get tenant(): string {
    return this.#run.event.tenant;
  }

  /** Always 1: a live run is never retried. */
  get attempt(): number {
    return 1;
  }

  /** Aborts when the run should end: at its timeout, for a newer event in mode `restart`, or when the book closes. */
  get signal(): AbortSignal {
    return this.#run.signal;
  }

  /** Writes a line that is kept with the run. */
  get log(): LiveRun["log"] {
    return (message, fields, level) => this.#run.log(message, fields, level);
  }
}
