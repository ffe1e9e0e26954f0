import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkTypes, projectWith, root, runProgram, snippetsOf } from "./snippet.ts";

test("the examples of docs/apps.md are a program that runs, and its types hold", async (t) => {
  const page = snippetsOf(readFileSync(join(root, "docs/apps.md"), "utf8")).join("\n");
  const folder = projectWith(t, { "page.ts": page });

  const types = await checkTypes(folder);
  const ran = await runProgram("page.ts", folder);

  assert.deepEqual([types.code, types.stdout], [0, ""]);
  assert.deepEqual([ran.code, ran.stderr], [0, ""]);
  assert.deepEqual(ran.stdout.trimEnd().split("\n"), [
    "hall: light on",
    "running running",
    "turnOn moving = true home",
  ]);
});
