// Whatever happens in whatever order, every event that a listener hears becomes exactly one thing, and modes keep their word.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { openLive } from "./open-live.ts";

type Step = { readonly do: "emit" | "end" | "fail" | "wait"; readonly n: number };

const steps = fc.array(
  fc.record<Step>({ do: fc.constantFrom("emit", "emit", "emit", "end", "fail", "wait"), n: fc.nat({ max: 200 }) }),
  { maxLength: 40 },
);

const listeners = fc.record({
  mode: fc.constantFrom("parallel", "single", "restart", "queued"),
  debounce: fc.option(fc.constant(50)),
  throttle: fc.option(fc.constant(100)),
  timeout: fc.option(fc.constant(150)),
  once: fc.boolean(),
  atOnce: fc.boolean(),
});

test("every event heard is run, dropped, left out or waiting, and never two of these", async () => {
  await fc.assert(
    fc.asyncProperty(listeners, steps, async ({ mode, debounce, throttle, timeout, once, atOnce }, script) => {
      const { clock, bus, listen, emit, runs, busy, counts } = openLive();
      const open: { n: number; end(): void; fail(error: Error): void }[] = [];
      const begun: number[] = [];
      const detach = listen("any", {
        on: "go",
        mode,
        once,
        ...(mode === "parallel" ? { concurrency: 2 } : mode === "queued" ? { backlog: 3 } : {}),
        ...(debounce === null ? {} : { debounce }),
        ...(throttle === null ? {} : { throttle }),
        ...(timeout === null ? {} : { timeout }),
        run(n: number) {
          begun.push(n);
          if (atOnce) return undefined;
          const { promise, resolve, reject } = Promise.withResolvers<void>();
          open.push({ n, end: resolve, fail: reject });
          return promise;
        },
      });
      let said = 0;

      for (const step of script) {
        if (step.do === "emit") emit("go", said++);
        else if (step.do === "wait") await clock.advance(step.n);
        else {
          const [handler] = open.splice(step.n % Math.max(1, open.length), 1);
          if (step.do === "end") handler?.end();
          else handler?.fail(new Error("failed"));
          await clock.advance(0);
        }
        const { running, waiting } = counts("any") as { running: number; waiting: number };
        assert.ok(running <= (mode === "parallel" ? 2 : 1), `${running} run at once`);
        assert.ok(waiting <= (mode === "queued" ? 3 : mode === "restart" ? 1 : 0), `${waiting} wait`);
      }
      const [before] = bus.list("default");
      const detached = detach();
      await clock.advance(10_000);
      await detached;

      assert.deepEqual(
        begun,
        begun.toSorted((a, b) => a - b),
        "in the order in which they were said",
      );
      if (once) assert.ok(begun.length <= 1);
      const skipped = runs.filter(({ status }) => status === "skipped").length;
      assert.equal(runs.length - skipped, begun.length, "one row for each handler that began");
      const { heard = 0, leftOut = 0, waiting = 0, dropped = 0 } = before ?? {};
      const quiet = heard - begun.length - leftOut - dropped - waiting;
      assert.ok(quiet === 0 || (debounce !== null && quiet === 1), `${quiet} events are unaccounted for`);
      assert.equal(skipped, quiet, "what waited for its time at the end is a skipped run");
      assert.equal(busy(), dropped + waiting, "what waited at the end was dropped, and counted");
    }),
  );
});
