// One run of a live handler, from its event to its row. A run that was aborted is recorded as cancelled or timed out, whatever
// its handler returns or throws after that.
import { withCause, type Cause } from "../../core/cause.ts";
import { afterEither, type Clock, type Timer } from "../../core/clock.ts";
import { DaybookError, describeError, type ErrorDescription } from "../../core/error.ts";
import type { Ids } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import { isThenable } from "../../core/json.ts";
import { checkLevel, toLogLine, type LogLevel } from "../../telemetry/log.ts";
import type { RunWriter } from "../../telemetry/run-writer.ts";
import type { RunStatus } from "../../telemetry/run.ts";
import type { SessionKey } from "../../telemetry/session.ts";
import { inSpan } from "../../telemetry/trace.ts";
import type { LiveDefinition } from "./define.ts";
import type { LiveEvent } from "./live-event.ts";

export type LiveParts = {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly writer: RunWriter;
  readonly session: () => SessionKey;
  /** What the front door adds to a handler's context. */
  readonly contextFor: (context: LiveContext) => unknown;
};

export class LiveRun {
  readonly id: string;
  readonly event: LiveEvent;
  readonly #parts: LiveParts;
  readonly #definition: LiveDefinition;
  readonly #startedAt: number;
  readonly #startedMs: number;
  readonly #onEnd: (run: LiveRun) => void;
  #context: LiveContext | undefined;
  #reason: DaybookError | undefined;
  #timer: Timer | undefined;
  #ended = false;

  constructor(parts: LiveParts, definition: LiveDefinition, event: LiveEvent, onEnd: (run: LiveRun) => void) {
    this.#parts = parts;
    this.#definition = definition;
    this.event = event;
    this.#onEnd = onEnd;
    this.id = parts.ids();
    this.#startedAt = parts.clock.now();
    this.#startedMs = parts.clock.monotonic();
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Calls the handler. Never throws. A handler that awaits nothing has ended when this returns. */
  begin(): void {
    const { timeoutMs, run, name } = this.#definition;
    const { tenant, payload } = this.event;
    const context = new LiveContext(this.#parts, { runId: this.id, name, tenant, event: this.event });
    this.#context = context;
    if (timeoutMs !== null) {
      this.#timer = this.#parts.clock.after(timeoutMs, () => this.abort(timedOut(timeoutMs)));
    }
    const mine = causeOf(this.id, this.event);
    try {
      const handler = run as (payload: unknown, context: unknown) => unknown;
      const traced = { name, kind: "listener", runId: this.id, tenant, attempt: 1, traceparent: null };
      const result = withCause(mine, () => inSpan(traced, () => handler(payload, this.#parts.contextFor(context))));
      if (isThenable(result)) {
        Promise.resolve(result).then(
          () => this.#end("success"),
          (error: unknown) => this.#end("error", error),
        );
      } else this.#end("success");
    } catch (error) {
      this.#end("error", error);
    }
  }

  /** Asks the handler to end. If it has not ended after a grace period, the run is recorded as ended all the same. */
  abort(reason: DaybookError): void {
    if (this.#ended || this.#reason !== undefined) return;
    this.#reason = reason;
    this.#timer?.cancel();
    const end = (): void => this.#end("cancelled");
    this.#timer = afterEither(this.#parts.clock, limits.liveGraceMs, end, { keepAlive: true });
    this.#context?.abort(reason);
  }

  /** Records that it failed before its handler began. */
  fail(error: unknown): void {
    this.#end("error", error);
  }

  #end(how: "success" | "error" | "cancelled", thrown?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer?.cancel();
    const { clock, writer, session } = this.#parts;
    const { event } = this;
    const durationMs = Math.max(0, clock.monotonic() - this.#startedMs);
    const status = this.#reason === undefined ? how : statusOf(this.#reason);
    const error =
      this.#reason === undefined ? (how === "error" ? describeError(thrown) : null) : describe(this.#reason);
    writer.ended({
      tenant_id: event.tenant,
      id: this.id,
      kind: "listener",
      name: this.#definition.name,
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
      ...this.#definition.owner,
    });
    this.#onEnd(this);
  }
}

// Rows that the handler makes carry its run's id, and events that it publishes continue the chain of the event it heard.
function causeOf(runId: string, { rootRunId, chainDepth: depth, stored }: LiveEvent): Cause {
  const cause = { runId, rootRunId: rootRunId ?? runId, depth };
  return stored === null ? cause : { ...cause, event: { ...stored, depth } };
}

function statusOf(reason: DaybookError): RunStatus {
  return reason.code === "timeout" ? "timed_out" : "cancelled";
}

// The reason for the abort says more than what the aborted handler threw.
function describe(reason: DaybookError): ErrorDescription {
  return { type: String(reason.details["type"]), message: reason.message, trace: null };
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

type Run = { readonly runId: string; readonly name: string; readonly tenant: string; readonly event: LiveEvent };

/** What a live handler gets besides the payload; the front door adds the book. Every run has one, so it makes the signal only
 *  when the handler asks for it. Its getters return free functions, so a handler may destructure it:
 *  `(payload, { log, signal }) => …`. */
export class LiveContext {
  readonly #parts: { readonly clock: Clock; readonly writer: RunWriter };
  readonly #run: Run;
  #controller: AbortController | undefined;
  #reason: DaybookError | undefined;
  #logged = 0;

  constructor(parts: { readonly clock: Clock; readonly writer: RunWriter }, run: Run) {
    this.#parts = parts;
    this.#run = run;
  }

  get event(): LiveEvent {
    return this.#run.event;
  }

  get listener(): string {
    return this.#run.name;
  }

  get runId(): string {
    return this.#run.runId;
  }

  get tenant(): string {
    return this.#run.tenant;
  }

  /** Always 1: a live run is never retried. */
  get attempt(): number {
    return 1;
  }

  /** Aborts when the run should end: at its timeout, for a newer event in mode `restart`, or when the book closes. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Writes a line that is kept with the run. */
  get log(): (message: string, fields?: Record<string, unknown>, level?: LogLevel) => void {
    return (message, fields, level = "info") => {
      checkLevel(level, "log level");
      if (this.#logged++ >= limits.logLinesMax) return;
      const { clock, writer } = this.#parts;
      const { tenant: tenant_id, runId: run_id } = this.#run;
      writer.log({ tenant_id, run_id, logged_at: clock.now(), ...toLogLine(message, fields, level) });
    };
  }

  abort(reason: DaybookError): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
