// The programs that the pages of the docs show, run as a reader would run them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { projectWith, root, runPage, runProgram, snippetsOf } from "./snippet.ts";

test("the examples of docs/apps.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/apps.md");

  assert.deepEqual(printed.trimEnd().split("\n"), [
    "hall: light on",
    "off: 1 of motion.hall waited (debounce)",
    ...["running running", "turnOn moving = true home"],
  ]);
});

test("the examples of docs/calls.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/calls.md");

  assert.deepEqual(printed.trimEnd().split("\n"), [
    ...["succeeded 200 sealed http://127.0.0.1:80/[hidden]"],
    ...["Bearer s3cret-17 POST /reserve?token=s3cret was done", "time cancelled", "1"],
  ]);
});

test("the examples of docs/client.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/client.md");

  assert.deepEqual(printed.trimEnd().split("\n"), [
    ...["the customer of o-17", "the customer of o-18", "1 false"],
    ...["send-receipt completed", "send-receipt completed", "not_found", "run.ended true"],
  ]);
});

test("the examples of docs/events.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/events.md");

  assert.deepEqual(printed.trimEnd().split("\n"), [
    'audit order.paid {"orderId":"o-17"} 36',
    "2 reserved",
    "0 dead letters",
    "order.paid acked 2",
    "1 would be said again",
    "0 caused by it",
    "1 said again",
    'audit order.paid {"orderId":"o-17"} 36',
    "0 would leave; 0 are not finished",
    "charge failed for good, try 1: no such card",
  ]);
});

test("the examples of docs/jobs.md run, and the README's runs twice", async (t) => {
  const [readme = ""] = snippetsOf(readFileSync(join(root, "README.md"), "utf8"));

  const printed = await runPage(t, "docs/jobs.md");
  const project = projectWith(t, { "readme.ts": readme });
  const first = await runProgram("readme.ts", project);
  const second = await runProgram("readme.ts", project);

  assert.match(printed, /^true false\nsuccess /);
  assert.match(printed, /time \[\s+'It waits until [^]*it was enqueued for then/);
  assert.match(printed, /status: 'cancelled' \}\ntrue manual\n/);
  assert.match(printed, /\ncompleted 3 3\napp-1\.4\.1\.zip 1\n$/);
  assert.deepEqual([first.code, first.stderr], [0, ""]);
  assert.deepEqual([first.stdout, second.stdout, second.stderr], ["reserved\n", "reserved\n", ""]);
});

test("the example of docs/live-listeners.md runs", async (t) => {
  const [program = ""] = snippetsOf(readFileSync(join(root, "docs/live-listeners.md"), "utf8"));
  const folder = projectWith(t, { "page.ts": program });

  const ran = await runProgram("page.ts", folder);

  assert.deepEqual([ran.code, ran.stderr], [0, ""]);
  assert.deepEqual(ran.stdout.split("\n").slice(0, 3), [
    ...["attic has 31 degrees, said climate.reading", "emitted", "published"],
  ]);
  assert.match(
    ran.stdout,
    /too-hot: climate\.reading where room is one of "kitchen", "attic" and celsius > 30 at most once in 10m; 2 heard, 1 run/,
  );
});

test("the examples of docs/records.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/records.md");

  const lines = printed.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 5), ["2", "open paid 42", "[ [ 'o-17', 42, 4 ] ] null", "o-17", "1 0"]);
  for (const line of ["1 1", "[ { country: 'NO', sum: 42 } ]", "2 1", "NO [ [ 42, 1 ] ]", "[ [ 'o-17', 1 ] ]"]) {
    assert.ok(lines.includes(line), `${line} in ${printed}`);
  }
});

test("the examples of docs/schedules.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/schedules.md");

  const lines = printed.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 4), [
    ...["2026-03-29T02:30:00 2026-03-28T21:00:00 gap", "2026-03-30T02:30:00 2026-03-29T20:30:00 null"],
    ...["true queued", "manual true"],
  ]);
  assert.match(lines[4] ?? "", /^false It is not due at 2026-03-29T12:34:00\.000Z: every day at 07:00/);
  assert.ok(lines.includes("poll manual 0"));
});

test("the example of docs/sinks.md is a program that runs", async (t) => {
  const printed = await runPage(t, "docs/sinks.md");

  assert.deepEqual(printed.trimEnd().split("\n").toSorted(), [
    ...["ledger 0 true", "o-17 { orderId: 'o-17' }", "order.paid application/cloudevents+json", "warehouse 0 true"],
  ]);
});

test("the examples of docs/sql.md are a program that runs", async (t) => {
  assert.equal(await runPage(t, "docs/sql.md"), "[ 'a', 'c' ]\nnothing left\n");
});

test("the examples of docs/telemetry.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/telemetry.md");

  assert.match(printed, /^3 2 critical charge 3 3\ncharge, 2 times: RangeError: no credit for \d+\n$/);
});

test("the examples of docs/testing.md are a program that runs", async (t) => {
  assert.equal(await runPage(t, "docs/testing.md"), "all is as it should be\n");
});

test("the examples of docs/your-toolkit.md are a program that runs", async (t) => {
  assert.equal(await runPage(t, "docs/your-toolkit.md"), "Welcome, Ada.\nWelcome, Bob.\n");
});
