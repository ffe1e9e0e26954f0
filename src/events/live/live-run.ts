// One execution of one live handler, from its event to its row. What an aborted handler makes of it does not matter: it
// was asked to end, so it was cancelled, or timed out.
import { afterEither, type Clock, type Timer } from "../../core/clock.ts";
import { DaybookError, describeError, type ErrorDescription } from "../../core/error.ts";
import type { Ids } from "../../core/id.ts";
import { limits } from "../../core/limits.ts";
import { withCause, type Cause } from "../../core/cause.ts";
import type { RunStatus } from "../../telemetry/run.ts";
import type { RunWriter } from "../../telemetry/run-writer.ts";
import type { SessionKey } from "../../telemetry/session.ts";
import { inSpan } from "../../telemetry/trace.ts";
import type { LiveDefinition } from "./define.ts";
import { LiveContext } from "./live-context.ts";
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

  /** Calls the handler. It never throws; a handler that does not wait for anything has ended when this returns. */
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

  /** Asks the handler to end. One that does not is recorded as ended without it after a while. */
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
      // By the monotonic clock, so that a step of the wall clock does not let a run end before it began.
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

// What the handler makes carries its run's id, and what it says goes on the chain of what it hears.
function causeOf(runId: string, { rootRunId, chainDepth: depth, stored }: LiveEvent): Cause {
  const cause = { runId, rootRunId: rootRunId ?? runId, depth };
  return stored === null ? cause : { ...cause, event: { ...stored, depth } };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function statusOf(reason: DaybookError): RunStatus {
  return reason.code === "timeout" ? "timed_out" : "cancelled";
}

// Why it was aborted says more than what the handler threw when it was.
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
