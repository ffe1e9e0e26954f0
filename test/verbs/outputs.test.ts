import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { describeOutputs, outputsPath } from "../../schema/outputs.ts";
import { everyVerb } from "../../src/verbs/table.ts";
import { toWire, type Outputs } from "../../src/verbs/wire.ts";

const written = readFileSync(outputsPath, "utf8");
const { outputs, defs } = JSON.parse(written) as Outputs;

test("the schemas of answers are those of the types that the verbs return", () => {
  assert.equal(describeOutputs(), written, 'src/verbs/outputs.json is out of date: "npm run outputs" writes it anew');
});

test("every verb has the schema of its answer", async () => {
  // The compiler has an order of its own.
  assert.deepEqual(Object.keys(outputs).toSorted(), (await everyVerb()).map(([key]) => key).toSorted());
});

test("times become ISO 8601 where the schema has them, and nothing of the user's does", () => {
  const job = { id: "a", createdAt: 0, startedAt: null, params: { createdAt: 5, at: 7 }, run: { endedAt: 1 } };

  const wired = toWire({ items: [job], next: null }, outputs["jobs.list"], defs);

  assert.deepEqual(wired, {
    items: [
      {
        ...job,
        createdAt: "1970-01-01T00:00:00.000Z",
        run: { endedAt: "1970-01-01T00:00:00.001Z" },
      },
    ],
    next: null,
  });
});
