import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { root, runPage, runProgram } from "./snippet.ts";

test("the examples of docs/events.md are a program that runs", async (t) => {
  const printed = await runPage(t, "docs/events.md");

  assert.deepEqual(printed.trimEnd().split("\n"), [
    'audit order.paid {"orderId":"o-17"} 36',
    "2 reserved",
    "0 dead letters",
    "order.paid acked 2",
    "0 caused by it",
    "1 said again",
    'audit order.paid {"orderId":"o-17"} 36',
    "0 0",
    "charge failed for good, try 1: no such card",
  ]);
});

test("the example of events shows a dead letter and its redrive", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/events.ts"), testFolder(t));

  assert.deepEqual([code, stderr], [0, ""]);
  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual(
    new Set(lines.slice(0, 2)),
    new Set(["heard parcel.made, 1 after the first", "heard event.dead_letter, 1 after the first"]),
  );
  assert.deepEqual(lines.slice(2), [
    "order.paid is dead_lettered: print dead_lettered, ship acked",
    "printed",
    "1 redriven, order.paid is acked",
  ]);
});
