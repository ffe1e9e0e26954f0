import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import {
  asDaybookError,
  DaybookError,
  describeError,
  errorCodes,
  invalid,
  isDaybookError,
} from "../../src/core/error.ts";

test("an error carries its code, details and cause", () => {
  const cause = new Error("disk");
  const error = new DaybookError("full", "no room", { cause, details: { bytes: 5 } });

  assert.equal(error.name, "DaybookError");
  assert.equal(String(error), "DaybookError: no room");
  assert.deepEqual([error.code, error.details, error.cause], ["full", { bytes: 5 }, cause]);
  assert.ok(error.stack?.includes("error.test.ts"));
  assert.equal("cause" in invalid("no cause given"), false);
});

test("an error that arises deep inside names its caller, and the program's own number of frames stays what it was", () => {
  const deep = (depth: number): DaybookError => (depth === 0 ? invalid("no") : deep(depth - 1));
  const { stackTraceLimit } = Error;

  function caller(): DaybookError {
    return deep(25);
  }

  assert.match(caller().stack ?? "", /at caller /);
  assert.equal(Error.stackTraceLimit, stackTraceLimit);
});

test("every code has an HTTP error status, an exit code and a meaning", () => {
  for (const [code, { status, exit, meaning }] of Object.entries(errorCodes)) {
    assert.ok(status >= 400 && status < 600, code);
    assert.ok(exit >= 1 && exit <= 12, code);
    assert.ok(meaning.endsWith("."), code);
  }
});

test("an error of another copy of the package is known as ours", async () => {
  const copy = (await import(`../../src/core/daybook-error.ts?copy=${"2"}`)) as { DaybookError: typeof DaybookError };
  const error = new copy.DaybookError("busy", "taken");

  assert.equal(error instanceof DaybookError, false);
  assert.ok(isDaybookError(error));
  assert.equal(asDaybookError(error), error);
});

test("other errors and values are not ours", () => {
  for (const value of [new Error("x"), { code: "busy" }, null, undefined, "busy", new Proxy({}, hostile)]) {
    assert.equal(isDaybookError(value), false);
  }
});

test("anything thrown becomes an internal error with the original as its cause", () => {
  for (const value of [new TypeError("no"), "text", undefined, null, 7, new Proxy({}, hostile)]) {
    const error = asDaybookError(value);
    assert.equal(error.code, "internal");
    assert.equal(error.cause, value);
  }
  assert.equal(asDaybookError(new TypeError("no")).message, "no");
});

const hostile: ProxyHandler<object> = {
  get: () => assert.fail("a trap was called"),
  getPrototypeOf: () => assert.fail("a trap was called"),
  ownKeys: () => assert.fail("a trap was called"),
};

test("an error is described by its name, message and the stacks of its causes", () => {
  const error = new RangeError("outer", { cause: new TypeError("inner") });

  const { type, message, trace } = describeError(error);

  assert.equal(type, "RangeError");
  assert.equal(message, "outer");
  assert.match(trace ?? "", /^RangeError: outer\n {4}at [^]*\nCaused by: TypeError: inner\n {4}at /);
});

test("a thrown non-error is described and has no trace", () => {
  const cases: [unknown, string, string][] = [
    ["plain text", "string", "plain text"],
    [undefined, "undefined", "undefined"],
    [null, "null", "null"],
    [12n, "bigint", "12n"],
    [Symbol("s"), "symbol", "Symbol(s)"],
    [{ a: 1 }, "object", "{ a: 1 }"],
  ];
  for (const [value, type, message] of cases) assert.deepEqual(describeError(value), { type, message, trace: null });
});

test("describing never throws, whatever was thrown", () => {
  const throwing = new Error("hidden");
  for (const key of ["name", "message", "stack", "cause"]) {
    Object.defineProperty(throwing, key, { get: () => assert.fail("a getter threw") });
  }
  const inspected = {
    [Symbol.for("nodejs.util.inspect.custom")]() {
      throw new Error("no");
    },
  };
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const circle = new Error("circle");
  circle.cause = circle;
  const odd = Object.assign(new Error("odd"), { name: 5, message: { x: 1 }, stack: null });

  assert.equal(describeError(throwing).type, "Error");
  assert.equal(describeError(inspected).message, "a thrown object that cannot be described");
  for (const value of [proxy, new Proxy(throwing, hostile), circle, odd, Object.create(null)]) {
    const { type, message } = describeError(value);
    assert.equal(typeof type, "string");
    assert.equal(typeof message, "string");
  }
});

test("an error of another realm is an error", () => {
  const { type, message } = describeError(runInNewContext('new TypeError("elsewhere")'));

  assert.deepEqual([type, message], ["TypeError", "elsewhere"]);
});

test("a description can be stored: no U+0000, no lone surrogates, cut to size with a mark", () => {
  const { message, trace } = describeError(new Error(`\0\ud800${"é".repeat(20_000)}`));

  assert.ok(message.startsWith("\uFFFD\uFFFDé"));
  assert.ok(message.endsWith("é…"));
  assert.ok(Buffer.byteLength(message) <= 8192 && Buffer.byteLength(message) > 8180);
  assert.ok(trace !== null && Buffer.byteLength(trace) <= 16_384);
  assert.ok(message.isWellFormed() && trace.isWellFormed() && !trace.includes("\0"));
});
