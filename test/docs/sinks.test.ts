import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkTypes, projectWith, root, runProgram, snippetsOf } from "./snippet.ts";

test("the example of docs/sinks.md is a program that runs, and its types hold", async (t) => {
  const page = snippetsOf(readFileSync(join(root, "docs/sinks.md"), "utf8")).join("\n");
  const folder = projectWith(t, { "page.ts": page, "nats.ts": natsExample() });

  const types = await checkTypes(folder);
  const ran = await runProgram("page.ts", folder);

  assert.deepEqual([types.code, types.stdout], [0, ""]);
  assert.deepEqual([ran.code, ran.stderr], [0, ""]);
  assert.deepEqual(ran.stdout.trimEnd().split("\n").toSorted(), [
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
