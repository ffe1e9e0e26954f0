import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { testUnits } from "./test-units.ts";

test("every test file is in exactly one unit", () => {
  const files = globSync(["test/*.test.ts", "test/**/*.test.ts"]).map((path) => ({
    path,
    text: readFileSync(path, "utf8"),
  }));

  const units = testUnits(files);

  assert.deepEqual(units.flat().toSorted(), files.map(({ path }) => path).toSorted());
  assert.ok(units.length < files.length / 2, "most files share a process");
});

test("short files of one folder share a process, and those of another folder have theirs", () => {
  const units = testUnits([
    { path: "test/jobs/a.test.ts", text: "a" },
    { path: "test/calls/b.test.ts", text: "b" },
    { path: "test/jobs/c.test.ts", text: "c" },
  ]);

  assert.deepEqual(units, [["test/jobs/a.test.ts", "test/jobs/c.test.ts"], ["test/calls/b.test.ts"]]);
});

test("a unit is no longer than a few files, so that all processors are busy until the end", () => {
  const text = "x".repeat(25_000);
  const files = ["a", "b", "c", "d", "e"].map((name) => ({ path: `test/jobs/${name}.test.ts`, text }));

  assert.deepEqual(
    testUnits(files).map((unit) => unit.length),
    [2, 2, 1],
  );
});

for (const text of [
  "process.threadCpuUsage()",
  "process.memoryUsage().rss",
  'process.on("warning", hear)',
  "t.mock.timers.enable()",
  'process.env["HTTP_PROXY"] = "http://127.0.0.1"',
  "registerHooks({ resolve })",
]) {
  test(`a file with ${text} has a process of its own`, () => {
    const units = testUnits([
      { path: "test/jobs/a.test.ts", text: "" },
      { path: "test/jobs/b.test.ts", text },
      { path: "test/jobs/c.test.ts", text: "" },
    ]);

    assert.deepEqual(units, [["test/jobs/b.test.ts"], ["test/jobs/a.test.ts", "test/jobs/c.test.ts"]]);
  });
}

test("a file that kills processes has one of its own and starts before the others", () => {
  const units = testUnits([
    { path: "test/jobs/a.test.ts", text: "long".repeat(9000) },
    { path: "test/jobs-processes/kill.test.ts", text: "" },
    { path: "test/jobs-processes/stop.test.ts", text: "" },
  ]);

  assert.deepEqual(units, [
    ["test/jobs-processes/kill.test.ts"],
    ["test/jobs-processes/stop.test.ts"],
    ["test/jobs/a.test.ts"],
  ]);
});
