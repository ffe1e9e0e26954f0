import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, runPage } from "./snippet.ts";

test("the example of docs/sinks.md is a program that runs, and its types hold", async (t) => {
  const printed = await runPage(t, "docs/sinks.md", { "nats.ts": natsExample() });

  assert.deepEqual(printed.trimEnd().split("\n").toSorted(), [
    ...["ledger 0 true", "o-17 { orderId: 'o-17' }", "order.paid application/cloudevents+json", "warehouse 0 true"],
  ]);
});

/** The indented example of NATS, whose server need not be here. */
function natsExample(): string {
  const text = readFileSync(join(root, "docs/sinks.md"), "utf8");
  const code = /^ {4}sink\("orders"[^]*?^ {4}\}\)$/m.exec(text)?.[0] ?? "";
  assert.notEqual(code, "");
  return `import { nats, sink } from "daybook";\nexport const orders =\n${code};\n`;
}
