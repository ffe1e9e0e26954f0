// Payloads of defined events, as the listener's function gets them.
import assert from "node:assert/strict";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { test } from "node:test";
import { event } from "../../../src/define/event.ts";
import { limits } from "../../../src/core/limits.ts";
import { openLive } from "./open-live.ts";

/** Gives the number doubled: at once, or when the test lets it; refuses what is no number, and throws at zero. */
function doubling(answers?: PromiseWithResolvers<void>[]): StandardSchemaV1<number, number> {
  const check = (value: unknown): StandardSchemaV1.Result<number> => {
    if (value === 0) throw new RangeError("zero");
    return typeof value === "number" ? { value: value * 2 } : { issues: [{ message: "no number" }] };
  };
  const validate = (value: unknown): StandardSchemaV1.Result<number> | Promise<StandardSchemaV1.Result<number>> => {
    if (answers === undefined) return check(value);
    const answer = Promise.withResolvers<void>();
    answers.push(answer);
    return answer.promise.then(() => check(value));
  };
  return { "~standard": { version: 1, vendor: "test", validate } };
}

test("a listener gets what the schema returns; a payload that does not fit, or a schema that throws, is an error run", () => {
  const { listen, emit, runs } = openLive();
  const acted: unknown[] = [];
  const Level = event("level", { schema: doubling() });
  listen("doubled", { on: [Level, "other"], where: (n) => n !== 6, run: (n) => void acted.push(n) });
  listen("as it is", { on: "level", run: (n) => void acted.push(`raw ${String(n)}`) });

  for (const payload of [1, "x", 0, 3]) emit("level", payload);
  emit("other", 5);

  assert.deepEqual(acted, [2, "raw 1", "raw x", "raw 0", "raw 3", 5]);
  assert.deepEqual(
    runs.filter(({ status }) => status === "error").map((run) => [run.error_type, run.error_message]),
    [
      ["DependencyError", 'the payload of "level" does not fit its schema: no number'],
      ["DependencyError", "zero"],
    ],
  );
});

test("behind a schema that takes its time, events keep their order, and too many of them are dropped and counted", async () => {
  const { clock, listen, emit, busy, runs } = openLive();
  const answers: PromiseWithResolvers<void>[] = [];
  const acted: unknown[] = [];
  const Level = event("level", { schema: doubling(answers) });
  const detach = listen("doubled", { on: [Level, "other"], run: (n) => void acted.push(n) });

  emit("level", 1);
  emit("other", "between");
  emit("level", 0);
  emit("level", 2);
  for (const answer of answers.toReversed()) answer.resolve();
  await clock.advance(0);
  assert.deepEqual(acted, [2, "between", 4]);
  assert.deepEqual(
    runs.map(({ error_message }) => error_message),
    [null, null, "zero", null],
  );
  for (let n = 0; n < limits.liveBacklog + 3; n++) emit("level", 1);
  assert.equal(busy(), 3);
  await detach();
  for (const answer of answers) answer.resolve();
  await clock.advance(0);

  assert.equal(acted.length, 3, "what was still being read when it was detached is not acted on");
});
