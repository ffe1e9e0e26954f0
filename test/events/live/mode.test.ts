// What becomes of an event while a handler of the same listener still runs, and how a run ends.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { currentCause } from "../../../src/core/cause.ts";
import { heldHandler, openLive } from "./open-live.ts";

const statuses = (runs: readonly { readonly status: string }[]): string[] => runs.map(({ status }) => status);

describe("mode", () => {
  test("parallel runs up to its concurrency; further events are dropped and counted", async () => {
    const { clock, listen, emit, runs, busy, counts } = openLive();
    const held = heldHandler<number>();
    listen("many", { on: "go", concurrency: 3, run: held.run });

    for (let n = 0; n < 5; n++) emit("go", n);
    assert.deepEqual([held.begun.length, busy()], [3, 2]);
    held.begun[1]?.end();
    await clock.advance(0);
    emit("go", 5);

    assert.deepEqual(
      held.begun.map(({ payload }) => payload),
      [0, 1, 2, 5],
    );
    assert.deepEqual(statuses(runs), ["success"]);
    assert.deepEqual(counts("many"), { heard: 6, runs: 4, leftOut: 0, dropped: 2, running: 3, waiting: 0 });
  });

  test("single drops while it runs, and counts", async () => {
    const { clock, listen, emit, busy } = openLive();
    const held = heldHandler<number>();
    listen("one", { on: "go", mode: "single", run: held.run });

    emit("go", 1);
    emit("go", 2);
    emit("go", 3);
    held.begun[0]?.end();
    await clock.advance(0);
    emit("go", 4);

    assert.deepEqual(
      held.begun.map(({ payload }) => payload),
      [1, 4],
    );
    assert.equal(busy(), 2);
  });

  test("restart aborts what runs, waits for its end, and begins with the newest", async () => {
    const { clock, listen, emit, runs, busy, counts } = openLive();
    const held = heldHandler<number>();
    listen("fade", { on: "go", mode: "restart", run: held.run });

    emit("go", 1);
    const signal = held.begun[0]?.context.signal;
    emit("go", 2);
    emit("go", 3);
    assert.deepEqual([held.begun.length, signal?.aborted], [1, true]);
    assert.throws(() => signal?.throwIfAborted(), { code: "closed", message: /a newer event came/ });
    held.begun[0]?.fail(new Error("aborted"));
    await clock.advance(0);
    held.begun[1]?.end();
    await clock.advance(0);

    assert.deepEqual(
      held.begun.map(({ payload }) => payload),
      [1, 3],
    );
    assert.deepEqual(
      runs.map(({ status, error_type, error_message }) => [status, error_type, error_message]),
      [
        ["cancelled", "CancelledError", "a newer event came, and the listener begins again with it"],
        ["success", null, null],
      ],
    );
    assert.deepEqual([busy(), counts("fade")["leftOut"]], [0, 1]);
  });

  test("restart waits only a while for a handler that ignores its signal, and ignores its late result", async () => {
    const { clock, listen, emit, runs } = openLive();
    const held = heldHandler<number>();
    listen("fade", { on: "go", mode: "restart", run: held.run });

    emit("go", 1);
    emit("go", 2);
    await clock.advance(4999);
    assert.equal(held.begun.length, 1);
    await clock.advance(1);
    assert.equal(held.begun.length, 2);
    held.begun[0]?.end();
    held.begun[1]?.end();
    await clock.advance(0);

    assert.deepEqual(statuses(runs), ["cancelled", "success"]);
    assert.equal(runs[0]?.duration_ms, 5000);
  });

  test("queued keeps the order up to its backlog; further events are dropped and counted", async () => {
    const { clock, listen, emit, runs, busy, counts } = openLive();
    const held = heldHandler<number>();
    listen("line", { on: "go", mode: "queued", backlog: 3, run: held.run });

    for (let n = 0; n < 6; n++) emit("go", n);
    assert.deepEqual([held.begun.length, busy(), counts("line")["waiting"]], [1, 2, 3]);
    for (let n = 0; n < 4; n++) {
      assert.equal(held.begun.length, n + 1, "one at a time");
      if (n === 1) held.begun[n]?.fail(new Error("this one failed"));
      else held.begun[n]?.end();
      await clock.advance(0);
    }

    assert.deepEqual(
      held.begun.map(({ payload }) => payload),
      [0, 1, 2, 3],
    );
    assert.deepEqual(statuses(runs), ["success", "error", "success", "success"]);
  });

  test("many queued handlers that end at once do not overflow the stack", async () => {
    const { clock, listen, emit, runs } = openLive();
    const held = heldHandler<number>();
    listen("line", {
      on: "go",
      mode: "queued",
      backlog: 20_000,
      run: (n: number, context) => (n === 0 ? held.run(n, context) : undefined),
    });

    for (let n = 0; n <= 20_000; n++) emit("go", n);
    held.begun[0]?.end();
    await clock.advance(0);

    assert.deepEqual([runs.length, new Set(statuses(runs))], [20_001, new Set(["success"])]);
  });
});

describe("the end of a run", () => {
  test("a handler that takes longer than its timeout is aborted and recorded as timed out", async () => {
    const { clock, listen, emit, runs } = openLive();
    const held = heldHandler<number>();
    listen("slow", { on: "go", timeout: "2s", run: held.run });

    emit("go", 1);
    emit("go", 2);
    await clock.advance(1000);
    held.begun[1]?.end();
    await clock.advance(1000);
    const { signal } = held.begun[0]?.context ?? {};
    assert.deepEqual([signal?.aborted, statuses(runs)], [true, ["success"]]);
    held.begun[0]?.end();
    await clock.advance(10_000);

    assert.deepEqual(
      runs.map(({ status, error_type, duration_ms }) => [status, error_type, duration_ms]),
      [
        ["success", null, 1000],
        ["timed_out", "TimeoutError", 2000],
      ],
    );
  });

  test("whatever a handler throws is an error run, and the others hear the event all the same", async () => {
    const { clock, listen, emit, runs } = openLive();
    const thrown = [new TypeError("no lamp"), "text", null, { reason: "none" }];
    thrown.forEach((error, index) =>
      listen(`thrower-${index}`, {
        on: "go",
        run: () => {
          throw error as Error;
        },
      }),
    );
    listen("rejecter", { on: "go", run: () => Promise.reject(new RangeError("later")) });
    listen("fine", { on: "go", run: () => "a result that nobody keeps" });

    const heard = emit("go");
    await clock.advance(0);

    assert.equal(heard, 6);
    assert.deepEqual(
      runs.map(({ name, status, error_type }) => [name, status, error_type]),
      [
        ["thrower-0", "error", "TypeError"],
        ["thrower-1", "error", "string"],
        ["thrower-2", "error", "null"],
        ["thrower-3", "error", "object"],
        ["fine", "success", null],
        ["rejecter", "error", "RangeError"],
      ],
    );
    assert.match(runs[0]?.error_trace ?? "", /no lamp/);
  });

  test("the row of a live run is complete, even when the wall clock goes back meanwhile", async () => {
    const { clock, listen, emit, runs, logs } = openLive();
    const held = heldHandler<unknown>();
    listen("lamp", { on: "switch", run: held.run });
    const startedAt = clock.now();

    emit("switch");
    const { context } = held.begun[0] ?? {};
    context?.log("half way", { at: 0.5 }, "debug");
    await clock.advance(250);
    clock.step(-3_600_000);
    held.begun[0]?.end();
    await clock.advance(0);

    const { id, ...row } = runs[0] ?? {};
    assert.equal(id, context?.runId);
    assert.deepEqual(row, {
      tenant_id: "default",
      kind: "listener",
      name: "lamp",
      session_seq: 7,
      attempt: 1,
      started_at: startedAt,
      ended_at: startedAt + 250,
      duration_ms: 250,
      status: "success",
      error_type: null,
      error_message: null,
      error_trace: null,
      cause_run_id: null,
      root_run_id: null,
      event_id: null,
      topic: "switch",
    });
    const line = { tenant_id: "default", run_id: id, logged_at: startedAt, level: "debug" };
    assert.deepEqual(logs, [{ ...line, message: "half way", fields: '{"at":0.5}' }]);
    assert.throws(() => context?.log("x", {}, "loud" as never), { code: "invalid", message: /log level "loud"/ });
  });

  test("what a handler says carries its run, and a listener that says what it hears ends at the depth limit", async () => {
    const { clock, listen, emit, runs } = openLive();
    const causes: unknown[] = [];
    listen("echo", {
      on: "go",
      async run(_payload, { runId }) {
        causes.push([currentCause()?.runId === runId, currentCause()?.depth]);
        await Promise.resolve();
        emit("go");
      },
    });

    emit("go");
    await clock.advance(0);

    assert.deepEqual(
      causes,
      Array.from({ length: 21 }, (_, depth) => [true, depth]),
    );
    const last = runs.find(({ status }) => status === "error");
    assert.match(last?.error_message ?? "", /"go" would be number 21 in a chain of events that cause each other/);
    const ids = new Set(runs.map(({ id }) => id));
    const caused = runs.filter(({ cause_run_id }) => cause_run_id !== null && ids.has(cause_run_id));
    const [root] = runs.filter(({ cause_run_id }) => cause_run_id === null);
    assert.deepEqual([caused.length, new Set(caused.map(({ root_run_id }) => root_run_id))], [20, new Set([root?.id])]);
  });

  test("closing cancels what runs, waits for it, and drops what waits", async () => {
    const { clock, listen, emit, bus, runs, busy } = openLive();
    const held = heldHandler<number>();
    listen("line", { on: "go", mode: "queued", run: held.run });
    emit("go", 1);
    emit("go", 2);

    const closing = bus.close();
    assert.deepEqual([held.begun[0]?.context.signal.aborted, runs.length], [true, 0]);
    held.begun[0]?.end();
    await closing;

    assert.deepEqual([statuses(runs), busy(), held.begun.length], [["cancelled"], 1, 1]);
    assert.throws(() => emit("go"), { code: "closed" });
    assert.throws(() => listen("more", { on: "go", run: held.run }), { code: "closed" });
    await clock.advance(60_000);
    assert.equal(runs.length, 1);
  });
});
