import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../support/property.ts";
import { job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import type { JobRow } from "../../src/jobs/job.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { assertInvariants, pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { assertTrueReasons } from "../jobs/true-reasons.ts";
import { backends } from "../support/open-test.ts";

type Account = { readonly account: string };
const account = ({ account: key }: Account): string => key;
const run = (_params: Account): void => undefined;
const kinds = {
  free: job("free", { attempts: 1, run }),
  pair: job("pair", { attempts: 1, concurrency: 2, run }),
  keyed: job<Account>("keyed", { attempts: 1, limit: { key: account, concurrency: 1 }, run }),
  both: job<Account>("both", { attempts: 1, concurrency: 2, limit: { key: account, concurrency: 1 }, run }),
  rated: job("rated", { attempts: 1, concurrency: 2, rate: { max: 2, per: 100 }, run }),
};
const most: Record<string, { name?: number; key?: number }> = {
  pair: { name: 2 },
  keyed: { key: 1 },
  both: { name: 2, key: 1 },
  rated: { name: 2 },
};

type Command =
  | { do: "enqueue"; kind: keyof typeof kinds; account: string; queue: string; priority: number; count: number }
  | { do: "claim"; want: number; who: number }
  | { do: "succeed" | "fail" | "cancel" | "shutDown"; which: number }
  | { do: "pause" | "resume"; kind: keyof typeof kinds }
  | { do: "limit"; queue: string; to: number | null }
  | { do: "pass"; ms: number }
  | { do: "sweep" };

const kind = fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[]));
const queue = fc.constantFrom("x", "y");
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("enqueue" as const),
      kind,
      queue,
      account: fc.constantFrom("a", "b", "c"),
      priority: fc.constantFrom(0, 0, 1),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("claim" as const), want: fc.integer({ min: 1, max: 6 }), who: fc.nat(2) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "succeed" as const,
        "succeed" as const,
        "fail" as const,
        "cancel" as const,
        "shutDown" as const,
      ),
      which: fc.nat(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("pause" as const, "resume" as const), kind }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("limit" as const), queue, to: fc.constantFrom(1, 2, null) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(30, 100) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("sweep" as const) }) },
);

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, no limit is exceeded, reasons are true, and nobody waits who could run", async (t) => {
      await tellStories(t, backend, { use: Object.values(kinds), command, tell });
    });
  });
}

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const running: ClaimedJob[] = [];
  const claimers = [at.claimer(), at.claimer(), at.claimer()];
  const limits: Record<string, number | null> = { x: null, y: null };
  // Jobs that ran when a lane's limit was lowered may be more than it says, until they end.
  const before: Record<string, number> = { x: 0, y: 0 };
  const take = (which: number): ClaimedJob | undefined => running.splice(which % Math.max(1, running.length), 1)[0];

  async function claim(want: number, who: number): Promise<number> {
    const turn = await at.turn(want, claimers[who] ?? at.claimer(), { lookForDue: true, lookForHosted: true });
    running.push(...turn.claim.jobs);
    return turn.claim.jobs.length;
  }

  for (const each of commands) {
    switch (each.do) {
      case "enqueue": {
        const params = Array.from({ length: each.count }, () => ({ account: each.account }));
        await at.jobs.enqueueMany(kinds[each.kind], params, { queue: each.queue, priority: each.priority });
        break;
      }
      case "claim":
        await claim(each.want, each.who);
        break;
      case "succeed":
      case "fail": {
        const ended = take(each.which);
        if (ended !== undefined) await at.end(ended, { status: each.do === "fail" ? "error" : "success" });
        break;
      }
      case "shutDown": {
        const ended = take(each.which);
        if (ended !== undefined) await at.end(ended, { status: "cancelled", shutdown: true });
        break;
      }
      case "cancel": {
        const waiting = await at.rows<JobRow>(
          "select * from daybook_job_now where status in ('waiting', 'queued') order by seq",
        );
        const cancelled = pick(waiting, each.which);
        if (cancelled !== undefined) await at.jobs.cancel(cancelled.id);
        break;
      }
      case "pause":
        await at.jobs.pause(each.kind);
        break;
      case "resume":
        await at.jobs.resume(each.kind);
        break;
      case "limit":
        await at.queues.limit(each.queue, { concurrency: each.to });
        limits[each.queue] = each.to;
        before[each.queue] = running.filter((job1) => job1.queue === each.queue).length;
        break;
      case "pass":
        await at.clock.advance(each.ms);
        break;
      case "sweep":
        await sweep(at.engine);
        break;
    }
    for (const lane of ["x", "y"]) {
      const live = running.filter((job1) => job1.queue === lane).length;
      before[lane] = Math.min(before[lane] ?? 0, live);
      assert.ok(live <= Math.max(limits[lane] ?? 99, before[lane] ?? 0), `${live} run in ${lane}`);
    }
    assertLimits(running);
    await assertTrueReasons(at);
  }

  // In the end everything runs, a few at a time, without a sweep: nobody was forgotten.
  for (const name of Object.keys(kinds)) await at.jobs.resume(name);
  for (const name of ["x", "y"]) await at.queues.limit(name, { concurrency: null });
  for (let idle = 0; idle < 4;) {
    const claimed = await claim(3, 0);
    assertLimits(running);
    idle = claimed === 0 && running.length === 0 ? idle + 1 : 0;
    for (const ended of running.splice(0, 2)) await at.end(ended, { status: "success" });
    if (claimed === 0) await at.clock.advance(100);
  }
  assert.deepEqual(
    await at.rows("select id, name, status, waits_for, waits_key from daybook_job_now where finished_at is null"),
    [],
  );
  await assertInvariants(at);
}

function assertLimits(running: readonly ClaimedJob[]): void {
  for (const [name, jobs] of Map.groupBy(running, (each) => each.name)) {
    assert.ok(jobs.length <= (most[name]?.name ?? 99), `${jobs.length} of ${name} run`);
  }
  for (const [key, jobs] of Map.groupBy(running, (each) => each.limit_key ?? each.id)) {
    assert.ok(jobs.length <= (most[jobs[0]?.name ?? ""]?.key ?? 99), `${jobs.length} with ${key} run`);
  }
}
