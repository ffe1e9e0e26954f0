import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDaybookError, job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { assertInvariants, pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";
import { fc } from "../support/property.ts";

const kinds = [
  job("once", { attempts: 1, run: () => undefined }),
  job("thrice", { attempts: 3, losses: 1, backoff: ["10ms"], run: () => undefined }),
];

const [first] = kinds as [(typeof kinds)[number]];
const modes = ["sequential", "parallel"] as const;
const policies = ["stop", "continue", "skip"] as const;

type Command =
  | { do: "create"; mode: (typeof modes)[number]; onFailure: (typeof policies)[number]; members: number[] }
  | { do: "add"; which: number; kind: number }
  | { do: "claim"; want: number }
  | { do: "end"; which: number; status: "success" | "error" }
  | { do: "lose" | "pass" }
  | { do: "cancel" | "cancelGroup" | "retry"; which: number };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("create" as const),
      mode: fc.constantFrom(...modes),
      onFailure: fc.constantFrom(...policies),
      members: fc.array(fc.nat(1), { minLength: 2, maxLength: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("add" as const), which: fc.nat(), kind: fc.nat(1) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("claim" as const), want: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      which: fc.nat(),
      status: fc.constantFrom("success" as const, "error" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("pass" as const, "pass" as const, "lose" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("cancel" as const, "cancelGroup" as const, "retry" as const),
      which: fc.nat(),
    }),
  },
);

type Slot = { slot: number; status: string; waits_for: string | null; seq: number; after: string | null };
type Group = { seq: number; id: string; mode: string; on_failure: string; status: string; cancelled: number | null };

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, a group follows its mode and policy, and ends once all its jobs have", async (t) => {
      await tellStories(t, backend, { use: kinds, command, tell, long: true });
    });
  });
}

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const running = new Map<string, ClaimedJob>();
  let session = await at.newSession();

  async function claim(want: number): Promise<void> {
    const by = at.claimer(session.seq);
    const { claim: found } = await at.turn(want, by, { lookForDue: true });
    for (const claimed of found.jobs) running.set(claimed.id, claimed);
    if (running.size > 0) return;
    for (const claimed of (await at.turn(1, by, { alone: true })).claim.jobs) running.set(claimed.id, claimed);
  }
  async function end(which: number, status: "success" | "error"): Promise<void> {
    const claimed = pick([...running.values()], which);
    if (claimed === undefined) return;
    running.delete(claimed.id);
    await at.end(claimed, { status });
  }

  for (const each of commands) {
    switch (each.do) {
      case "create":
        await at.groups.create({ mode: each.mode, onFailure: each.onFailure }, (group) => {
          for (const kind of each.members) group.add(pick(kinds, kind) ?? first, {});
        });
        break;
      case "add": {
        const group = pick(await groups(at), each.which);
        if (group !== undefined) await permitted(at.groups.add(group.id, pick(kinds, each.kind) ?? first, {}));
        break;
      }
      case "claim":
        await claim(each.want);
        break;
      case "end":
        await end(each.which, each.status);
        break;
      case "pass":
        await at.clock.advance(10);
        break;
      case "lose":
        await at.run(
          `update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${session.seq}`,
        );
        session = await at.newSession();
        await sweep(at.engine);
        running.clear();
        break;
      case "cancelGroup": {
        const group = pick(await groups(at), each.which);
        if (group !== undefined) await permitted(at.groups.cancel(group.id));
        break;
      }
      case "cancel":
      case "retry": {
        const found = pick((await at.jobs.list({ limit: 500 })).items, each.which);
        if (found !== undefined) await permitted(at.jobs[each.do](found.id));
        break;
      }
    }
    for (const group of await groups(at)) await check(at, group);
    await assertInvariants(at);
  }
  // Whatever was left open ends when everything that may run succeeds.
  for (let round = 0; round < 200 && (await groups(at)).some(({ status }) => status === "open"); round++) {
    await at.clock.advance(10);
    await claim(10);
    while (running.size > 0) await end(0, "success");
  }
  for (const group of await groups(at)) {
    assert.notEqual(group.status, "open");
    await check(at, group);
  }
}

// What a command may answer: it was done, or it came too late.
async function permitted(asked: Promise<unknown>): Promise<void> {
  await asked.catch((error: unknown) => {
    if (!isDaybookError(error) || error.code !== "conflict") throw error;
  });
}

async function groups(at: TestEngine): Promise<Group[]> {
  return at.rows<Group>(
    "select seq, id, mode, on_failure, status, cancel_requested_at as cancelled from daybook_job_group order by seq",
  );
}

// The rules, read from the jobs alone: the last job of each slot, in the order of the slots.
async function check(at: TestEngine, group: Group): Promise<void> {
  const rows = await at.rows<Slot>(
    `select group_slot as slot, status, waits_for, seq, (select run.status from daybook_job_now parent
        join daybook_run run on run.tenant_id = parent.tenant_id and run.id = parent.run_id where parent.seq = job.retry_of) as after
      from daybook_job_now job where group_seq = ${group.seq} order by seq`,
  );
  const last = new Map(rows.map((row) => [row.slot, row]));
  const slots = [...last.values()].sort((a, b) => a.slot - b.slot);
  const open = slots.filter(({ status }) => ["waiting", "queued", "running"].includes(status));
  const bad = slots.filter(({ status }) => status === "failed" || status === "cancelled");

  if (open.length === 0) {
    const expected = slots.every(({ status }) => status === "completed")
      ? "completed"
      : group.cancelled !== null
        ? "cancelled"
        : group.on_failure === "stop"
          ? "failed"
          : "partial";
    assert.equal(group.status, expected);
  } else assert.equal(group.status, "open");
  if (group.on_failure !== "continue" && bad.length > 0) {
    // What ran when its group began to skip goes on, also after a loss.
    const goesOn = ({ status, waits_for, after }: Slot): boolean =>
      status === "running" ||
      (group.on_failure === "skip" && after === "lost" && (status === "queued" || waits_for === "alone"));
    assert.ok(open.every(goesOn), `after a failure with ${group.on_failure} nothing more begins`);
  }
  if (group.on_failure !== "skip") assert.ok(slots.every(({ status }) => status !== "skipped"));
  if (group.mode === "sequential") {
    assert.ok(open.filter(({ waits_for }) => waits_for !== "group").length <= 1, "one after another");
  }
}
