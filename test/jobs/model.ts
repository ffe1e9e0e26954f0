// What the models share: one engine that is emptied before each run, the seed in the report, the invariants as a check.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { jobChecks } from "../../src/jobs/checks.ts";
import type { AnyJob } from "../../src/jobs/define.ts";
import type { Backend } from "../support/open-test.ts";
import { fc, isProof, seed } from "../support/property.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

/** Runs the commands of many random stories. The seed is printed; `DAYBOOK_TEST_SEED` repeats it, `DAYBOOK_TEST_RUNS` asks
 *  for more stories than `npm test` does, and `npm run proof` tells more on PostgreSQL. */
export async function tellStories<Command>(
  t: TestContext,
  backend: Backend,
  {
    use,
    command,
    tell,
    long = false,
  }: {
    readonly use: readonly AnyJob[];
    readonly command: fc.Arbitrary<Command>;
    /** Plays one story on an empty engine. */
    readonly tell: (at: TestEngine, commands: readonly Command[]) => Promise<void>;
    /** Stories of up to 40 commands, where the usual ten say too little. */
    readonly long?: boolean;
  },
): Promise<void> {
  const at = await openEngine(t, backend === "sqlite" ? "memory" : backend, { use });
  const usual = backend === "sqlite" ? 100 : isProof ? 25 : 8;
  const numRuns = Number(process.env["DAYBOOK_TEST_RUNS"] ?? usual);
  t.diagnostic(`${numRuns} stories from seed ${seed}`);
  const stories = fc.array(command, { minLength: 5, maxLength: 40, ...(long ? { size: "max" } : {}) });
  const property = fc.asyncProperty(stories, async (commands) => {
    await empty(at);
    await tell(at, commands);
    await assertInvariants(at);
  });
  await fc.assert(property, { numRuns, endOnFailure: process.env["DAYBOOK_TEST_SHRINK"] === undefined });
}

/** Takes away what a story left, and keeps what the engine has learned. */
export async function empty(at: TestEngine): Promise<void> {
  for (const table of [
    "run",
    "line",
    "job_key",
    "permit",
    "job_pin",
    "job",
    "job_group",
    "reservation",
    "rate_window",
    "paused_name",
  ])
    await at.run(`delete from daybook_${table}`);
  await at.run("update daybook_lane set limit_max = null, rate_max = null, rate_ms = null, paused_at = null");
}

/** What `doctor` asks of jobs, without its thread for each question. */
export async function assertInvariants(at: TestEngine): Promise<void> {
  for (const { promise, name, find } of jobChecks) {
    const found = await at.store.read(find(at.store.dialect, at.store.clock.now()));
    assert.deepEqual(found, [], `${promise}: ${name}`);
  }
}

export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)];
}
