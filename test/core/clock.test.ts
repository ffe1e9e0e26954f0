import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { systemClock } from "../../src/core/clock.ts";

test("wall time is a whole number of milliseconds", () => {
  assert.ok(Number.isSafeInteger(systemClock.now()));
  assert.ok(systemClock.now() > Date.UTC(2026, 0, 1));
});

test("monotonic time never goes back", () => {
  let last = systemClock.monotonic();
  for (let i = 0; i < 10_000; i++) {
    const next = systemClock.monotonic();
    assert.ok(next >= last);
    last = next;
  }
});

test("monotonic time has the same origin in every thread", async () => {
  const url = new URL("../../src/core/clock.ts", import.meta.url).href;
  const code = `import("${url}").then((m) => require("node:worker_threads").parentPort.postMessage(m.systemClock.monotonic()))`;
  const before = Number(process.hrtime.bigint()) / 1e6;

  const inThread = await new Promise<number>((resolve, reject) => {
    const worker = new Worker(code, { eval: true });
    worker.once("message", resolve).once("error", reject);
  });

  assert.ok(inThread >= before && inThread <= systemClock.monotonic());
});

test("a timer runs once, and not when it was cancelled", async () => {
  let runs = 0;
  const cancelled = systemClock.after(1, () => assert.fail("it was cancelled"));
  cancelled.cancel();

  await new Promise<void>((resolve) => {
    systemClock.after(1, () => (runs++, resolve()), { keepAlive: true });
  });

  assert.equal(runs, 1);
});

test("a delay beyond 31 bits is armed in steps instead of firing at once", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const stepMs = 2 ** 31 - 1;
  let fired = false;
  systemClock.after(2 * stepMs + 5, () => (fired = true), { keepAlive: true });

  t.mock.timers.tick(stepMs);
  assert.equal(fired, false);
  t.mock.timers.tick(stepMs);
  assert.equal(fired, false);
  t.mock.timers.tick(5);
  assert.equal(fired, true);
});

test("a long timer can be cancelled after it was armed again", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const timer = systemClock.after(2 ** 33, () => assert.fail("it was cancelled"), { keepAlive: true });
  t.mock.timers.tick(2 ** 32);

  timer.cancel();

  t.mock.timers.tick(2 ** 33);
});

test("sleep ends early without an error when its signal aborts", async () => {
  const stop = new AbortController();
  const sleeping = systemClock.sleep(2 ** 40, stop.signal);

  stop.abort();

  assert.equal(await sleeping, undefined);
  assert.equal(await systemClock.sleep(2 ** 40, stop.signal), undefined);
});

test("the next turn comes after promises have settled", async () => {
  const order: string[] = [];
  void Promise.resolve().then(() => order.push("promise"));

  await systemClock.nextTurn();

  assert.deepEqual(order, ["promise"]);
});
