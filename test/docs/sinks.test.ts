import assert from "node:assert/strict";
import { test } from "node:test";
import { runPage } from "./snippet.ts";

test("the example of docs/sinks.md is a program that runs", async (t) => {
  const printed = await runPage(t, "docs/sinks.md");

  assert.deepEqual(printed.trimEnd().split("\n").toSorted(), [
    ...["ledger 0 true", "o-17 { orderId: 'o-17' }", "order.paid application/cloudevents+json", "warehouse 0 true"],
  ]);
});
