// Spans: one for each run, under the span in which its job was made, when there is an SDK; a small one stands in here.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { context, ROOT_CONTEXT, trace, type Context, type Span, type Tracer } from "@opentelemetry/api";
import { job, listener } from "../../src/index.ts";
import { currentTraceparent, inSpan } from "../../src/telemetry/trace.ts";
import { backends, openTest } from "../support/open-test.ts";

type Made = {
  name: string;
  traceId: string;
  spanId: string;
  parent: string | undefined;
  failed: boolean;
  ended: number;
};

const made: Made[] = [];

const tracer = {
  startSpan: (name: string, _options: unknown, parent: Context = ROOT_CONTEXT) => startSpan(name, parent),
  startActiveSpan: (name: string, ...rest: unknown[]) => {
    const work = rest.pop() as (span: Span) => unknown;
    const parent = (rest[1] as Context | undefined) ?? context.active();
    const span = startSpan(name, parent);
    return context.with(trace.setSpan(parent, span), () => work(span));
  },
} as Tracer;

function startSpan(name: string, parent: Context): Span {
  const above = trace.getSpanContext(parent);
  const id = (made.length + 1).toString(16);
  const own: Made = {
    name,
    traceId: above?.traceId ?? id.padStart(32, "a"),
    spanId: id.padStart(16, "b"),
    parent: above?.spanId,
    failed: false,
    ended: 0,
  };
  made.push(own);
  return {
    spanContext: () => ({ traceId: own.traceId, spanId: own.spanId, traceFlags: 1 }),
    recordException: () => void (own.failed = true),
    setStatus: () => undefined,
    end: () => void own.ended++,
  } as unknown as Span;
}

const active = new AsyncLocalStorage<Context>();

test("without an SDK nothing is traced, and work runs unchanged", () => {
  const run = { name: "n", kind: "job", runId: "r", tenant: "t", attempt: 1, traceparent: null };

  assert.equal(currentTraceparent(), undefined);
  assert.equal(
    inSpan(run, () => 7),
    7,
  );
});

for (const backend of backends) {
  test(`${backend}: a run, and its retry, are spans under the one that enqueued; a live run has its own`, async (t) => {
    trace.setGlobalTracerProvider({ getTracer: () => tracer });
    context.setGlobalContextManager({
      active: () => active.getStore() ?? ROOT_CONTEXT,
      with: (given, work, self, ...args) => active.run(given, () => work.call(self as never, ...args)),
      bind: (_given, target) => target,
      enable: () => context as never,
      disable: () => context as never,
    });
    made.length = 0;
    const flaky = job("flaky", {
      attempts: 2,
      backoff: ["0s"],
      run: (_none, { attempt }) => (attempt === 1 ? Promise.reject(new Error("once")) : 1),
    });
    const lamp = listener("lamp", { on: "x", live: true, run: () => undefined });
    const { book } = await openTest(t, backend, { use: [flaky, lamp] });

    await tracer.startActiveSpan("request", async () => void (await book.jobs.enqueue(flaky, {})));
    book.events.emit("x", {});
    const worker = await book.startWorker();
    await worker.idle();

    const [request] = made;
    const runs = made.filter(({ name }) => name === "flaky");
    assert.deepEqual(
      runs.map(({ traceId, parent, failed, ended }) => [traceId === request?.traceId, parent, failed, ended]),
      [
        [true, request?.spanId, true, 1],
        [true, request?.spanId, false, 1],
      ],
    );
    assert.deepEqual(
      made.filter(({ name }) => name === "lamp").map(({ parent, ended }) => [parent, ended]),
      [[undefined, 1]],
    );
  });
}
