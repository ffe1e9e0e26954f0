import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { projectWith, root, runProgram, snippetsOf } from "./snippet.ts";

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

test("the motion light goes on at once and off after five quiet minutes", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/motion-light.ts"), testFolder(t));

  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    "18:00 the light is on",
    "18:09 the light is off",
    "light-on: motion.hall where moving = true and isDark; heard 4, ran 1",
    "light-off: motion.hall where moving = false for 5m; heard 4, ran 1",
    "diary: light.hall.changed; heard 2, ran 2",
    "4 runs are in the book: diary, diary, light-off, light-on",
  ]);
});
