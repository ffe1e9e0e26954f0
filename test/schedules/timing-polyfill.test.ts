import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { dueTimes } from "./due-times.ts";

const run = promisify(execFile);

test("a Node without Temporal finds the same times by the polyfill", async () => {
  const program = fileURLToPath(import.meta.resolve("./due-times.ts"));

  const { stdout } = await run(process.execPath, ["--no-harmony-temporal", program]);

  const { temporal, times } = JSON.parse(stdout) as { temporal: string; times: string[] };
  assert.equal(temporal, "undefined");
  assert.deepEqual(times, dueTimes());
});
