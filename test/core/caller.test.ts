import assert from "node:assert/strict";
import { test } from "node:test";
import { calledAt, calledFrom, invalid, placeOf, showPlace } from "../../src/core/error.ts";

/** As it arrives from a thread or a server. */
function without(): Error {
  const error = invalid("wrong");
  error.stack = "DaybookError: wrong\n    at send (node:net:1:1)";
  return error;
}

function verb(): ReturnType<typeof placeOf> {
  return placeOf(verb);
}

test("the place of a verb is the line that called it", () => {
  const before = Error.stackTraceLimit;

  const place = verb();

  assert.match(showPlace(place) ?? "", /^\/.*\/caller\.test\.ts:\d+:\d+$/);
  assert.equal(Error.stackTraceLimit, before);
});

test("an error gets the user's frames once, and one that has some keeps its own", async () => {
  const fails = async (): Promise<never> => {
    await Promise.resolve();
    throw calledFrom(calledFrom(without()));
  };

  const failed = await fails().catch((error: unknown) => error as Error);
  const own = invalid("here");
  const { stack } = own;

  assert.match(failed.stack ?? "", /^DaybookError: wrong\n {4}at send \(node:net:1:1\)\n {4}at .*caller\.test\.ts/);
  assert.equal((calledAt(own, verb()) as Error).stack, stack);
});

test("errors of others are left alone, and so are stacks that are not text", () => {
  const foreign = new Error("theirs");
  const { stack } = foreign;
  const odd = Object.assign(without(), { stack: [1] as never });

  assert.equal((calledAt(foreign, verb()) as Error).stack, stack);
  assert.doesNotThrow(() => calledAt(odd, { stack: [] as never }));
  assert.equal(showPlace({ stack: {} as never }), undefined);
});
