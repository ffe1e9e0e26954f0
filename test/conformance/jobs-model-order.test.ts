import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../support/property.ts";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const work = job("work", { attempts: 1, run: (_params: { n: number }) => undefined });
const other = job("other", { attempts: 1, run: (_params: { n: number }) => undefined });

type Command =
  | { do: "enqueue"; priority: number; delayMs: number; count: number; name: "work" | "other" }
  | { do: "claim"; want: number }
  | { do: "cancel" | "settle"; which: number }
  | { do: "replace"; which: number; priority: number; delayMs: number }
  | { do: "pass"; ms: number }
  | { do: "pause" | "resume" };

const priority = fc.constantFrom(-1000, -1, 0, 0, 0, 1, 1000);
const delayMs = fc.constantFrom(0, 0, 0, 10, 50);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("enqueue" as const),
      priority,
      delayMs,
      count: fc.integer({ min: 1, max: 4 }),
      name: fc.constantFrom("work" as const, "other" as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("claim" as const), want: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("cancel" as const, "settle" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("replace" as const), which: fc.nat(), priority, delayMs }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(1, 10, 40) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("pause" as const, "resume" as const) }) },
);

// The model: an array in the order of making. A claim takes the first by priority of what is due and not paused.
type Entry = {
  id: string;
  name: string;
  n: number;
  priority: number;
  dueAt: number;
  state: "open" | "running" | "ended";
};

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, a claim takes what a sorted array would give", async (t) => {
      await tellStories(t, backend, { use: [work, other], command, tell });
    });
  });
}

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const line: Entry[] = [];
  const running: ClaimedJob[] = [];
  const by = at.claimer();
  let paused = false;
  const open = (): Entry[] => line.filter((entry) => entry.state === "open");

  async function claim(want: number): Promise<void> {
    const now = at.clock.now();
    const due = open().filter((entry) => entry.dueAt <= now && !(paused && entry.name === "work"));
    const expected = due.toSorted((a, b) => b.priority - a.priority || a.n - b.n).slice(0, want);
    // A claim that meets jobs which cannot run parks them and may come back with less; a worker then looks again.
    const claimed: ClaimedJob[] = [];
    for (let looks = 0; looks < 20 && claimed.length < want; looks++) {
      const turn = await at.turn(want - claimed.length, by, { lookForDue: true, lookForHosted: true });
      claimed.push(...turn.claim.jobs);
      if (turn.claim.jobs.length === 0 && !turn.claim.more && !turn.moreHosted) break;
    }
    assert.deepEqual(
      claimed.map((each) => each.id),
      expected.map((entry) => entry.id),
    );
    for (const entry of expected) entry.state = "running";
    running.push(...claimed);
  }

  for (const each of commands) {
    switch (each.do) {
      case "enqueue":
        for (let count = 0; count < each.count; count++) {
          const n = line.length;
          const { id } = await at.jobs.enqueue(
            each.name,
            { n },
            { priority: each.priority, in: each.delayMs, key: `k${n}` },
          );
          line.push({
            id,
            name: each.name,
            n,
            priority: each.priority,
            dueAt: at.clock.now() + each.delayMs,
            state: "open",
          });
        }
        break;
      case "claim":
        await claim(each.want);
        break;
      case "cancel": {
        const entry = pick(open(), each.which);
        if (entry === undefined) break;
        await at.jobs.cancel(entry.id);
        entry.state = "ended";
        break;
      }
      case "settle": {
        const [job1] = running.splice(each.which % Math.max(1, running.length), 1);
        if (job1 !== undefined) await at.end(job1, { status: each.which % 2 === 0 ? "success" : "error" });
        break;
      }
      case "replace": {
        const entry = pick(open(), each.which);
        if (entry === undefined) break;
        const options = {
          priority: each.priority,
          in: each.delayMs,
          key: `k${entry.n}`,
          onConflict: "replace",
        } as const;
        const replaced = await at.jobs.enqueue(entry.name, { n: entry.n }, options);
        assert.equal(replaced.id, entry.id);
        Object.assign(entry, { priority: each.priority, dueAt: at.clock.now() + each.delayMs });
        break;
      }
      case "pass":
        await at.clock.advance(each.ms);
        break;
      case "pause":
        await at.jobs.pause("work");
        paused = true;
        break;
      case "resume":
        await at.jobs.resume("work");
        paused = false;
        break;
    }
  }
  await at.clock.advance(50);
  if (paused) await at.jobs.resume("work");
  paused = false;
  await claim(line.length + 1);
}
