import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, runPage } from "./snippet.ts";

test("the examples of docs/open.md run", async (t) => {
  assert.equal(await runPage(t, "docs/open.md"), "hello Ada\n");
});

test("docs/open.md names every option of open()", () => {
  const [, known = ""] = /^const known[^=]*= \[\n([^]*?)\n\];/m.exec(source("src/open/open.ts")) ?? [];
  const internal = ["waitClock", "fault"];
  const named = [...known.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name).filter((name) => !internal.includes(name));
  const page = source("docs/open.md");

  assert.ok(named.length > 10);
  for (const name of named) assert.ok(page.includes(`\`${name}\``), `docs/open.md does not name ${name}`);
});

function source(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
