// Spans for programs with an OpenTelemetry SDK: one for each run, as a child of the span in which its job was made. Without an SDK
// nothing is loaded, and a run costs one look at a variable.
import type * as Otel from "@opentelemetry/api";

/** Its `api` is there once a book was opened in a program with an SDK. */
export const tracing: { api?: typeof Otel } = {};

/** An SDK registers itself under this symbol, whichever copy of the API it uses. */
const registered = Symbol.for("opentelemetry.js.api.1");

/** Called when a book is opened; a program sets up its SDK before that. */
export async function prepareTracing(): Promise<void> {
  if (Reflect.has(globalThis, registered)) tracing.api ??= await import("@opentelemetry/api");
}

/** The span that is active here, as W3C's `traceparent` writes it; undefined when there is none. */
export function currentTraceparent(): string | undefined {
  const { api } = tracing;
  const span = api?.trace.getActiveSpan()?.spanContext();
  if (span === undefined || api?.isSpanContextValid(span) !== true) return undefined;
  return `00-${span.traceId}-${span.spanId}-0${span.traceFlags & 1}`;
}

export type Traced = {
  readonly name: string;
  readonly kind: string;
  readonly runId: string;
  readonly tenant: string;
  readonly attempt: number;
  readonly traceparent: string | null;
};

/** Runs `work` in a span of its own, and returns or throws what it does. */
export function inSpan<T>(run: Traced, work: () => T): T {
  const { api } = tracing;
  if (api === undefined) return work();
  const { trace, SpanKind, SpanStatusCode } = api;
  const attributes = {
    "daybook.kind": run.kind,
    "daybook.name": run.name,
    "daybook.run.id": run.runId,
    "daybook.tenant": run.tenant,
    "daybook.attempt": run.attempt,
  };
  const options = { kind: SpanKind.CONSUMER, attributes };
  return trace.getTracer("daybook").startActiveSpan(run.name, options, parentOf(api, run.traceparent), (span) => {
    const fail = (error: unknown): void => {
      span.recordException(error instanceof Error ? error : String(error));
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    };
    try {
      const result = work();
      if (result instanceof Promise) void result.then(() => span.end(), fail);
      else span.end();
      return result;
    } catch (error) {
      fail(error);
      throw error;
    }
  });
}

const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

function parentOf({ ROOT_CONTEXT, trace }: typeof Otel, traceparent: string | null): Otel.Context {
  const [, traceId, spanId, flags] = pattern.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags ?? "0", 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}
