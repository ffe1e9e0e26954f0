import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/core/limits.ts";
import { createBatchSize } from "../../src/jobs/batch-size.ts";

function ran(size: ReturnType<typeof createBatchSize>, times: number, ms: number): number {
  for (let run = 0; run < times; run++) size.ran(ms);
  return size.current;
}

test("quick work is claimed in batches, slow work as slots become free", () => {
  const size = createBatchSize(10);
  assert.equal(size.current, 10);
  assert.equal(ran(size, 10, 0), 20);
  assert.equal(ran(size, 1000, 0), limits.claimJobsMax);
  assert.equal(ran(size, 10, 5000), 10);
  assert.equal(ran(size, 1000, 5000), 10);
});

test("one run that was held up costs half a batch, and not all of it", () => {
  const size = createBatchSize(10);
  ran(size, 1000, 0);
  assert.equal(ran(size, 1, 30), limits.claimJobsMax / 2);
  assert.equal(ran(size, limits.claimJobsMax / 2, 0), limits.claimJobsMax);
});

test("a worker that may run many at once is never asked to hold fewer", () => {
  const size = createBatchSize(500);
  assert.equal(ran(size, 1000, 0), 500);
  assert.equal(ran(size, 10, 60_000), 500);
});
