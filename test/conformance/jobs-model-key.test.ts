import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../support/property.ts";
import { isDaybookError, job, type OnConflict } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const work = job("work", { attempts: 2, backoff: ["20ms"], run: (_params: { n: number }) => undefined });

type Scope = "queued" | "done" | "window";
type Command =
  | { do: "enqueue"; tenant: string; key: string; scope: Scope; onConflict: OnConflict; delayMs: number }
  | { do: "claim" | "succeed" | "fail" | "cancel"; which: number }
  | { do: "pass"; ms: number };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("enqueue" as const),
      tenant: fc.constantFrom("acme", "bolt"),
      key: fc.constantFrom("a", "b"),
      scope: fc.constantFrom<Scope[]>("queued", "done", "window"),
      onConflict: fc.constantFrom<OnConflict[]>("keep", "replace", "error"),
      delayMs: fc.constantFrom(0, 0, 30),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("claim" as const, "claim" as const, "succeed" as const, "fail" as const, "cancel" as const),
      which: fc.nat(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(10, 25) }) },
);

// The model: who has a key, and until when.
type Entry = {
  id: string;
  tenant: string;
  key: string;
  scope: Scope;
  until: number;
  dueAt: number;
  attempt: number;
  state: "open" | "running" | "ended";
  n: number;
};

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, a key is with one job at most, and the next enqueue of it does what its policy says", async (t) => {
      await tellStories(t, backend, { use: [work], command, tell });
    });
  });
}

const windowMs = 40;

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const all: Entry[] = [];
  const claims = new Map<string, ClaimedJob>();
  const by = at.claimer();
  const now = (): number => at.clock.now();
  const holds = (entry: Entry): boolean => {
    if (entry.scope === "window") return entry.until > now();
    if (entry.scope === "queued") return entry.state === "open" && entry.attempt === 1;
    return entry.state !== "ended";
  };
  let n = 0;

  for (const each of commands) {
    switch (each.do) {
      case "enqueue": {
        const { tenant, key, scope, onConflict, delayMs } = each;
        const keyScope = scope === "window" ? { window: windowMs } : scope;
        const holder = all.find((entry) => entry.tenant === tenant && entry.key === key && holds(entry));
        const expected =
          holder === undefined
            ? "created"
            : onConflict === "keep"
              ? "kept"
              : onConflict === "replace" && holder.state === "open" && holder.attempt === 1
                ? "replaced"
                : "refused";
        n++;
        const made = await at
          .tenant(tenant)
          .jobs.enqueue(work, { n }, { key, keyScope, onConflict, in: delayMs })
          .catch((error: unknown) => {
            if (isDaybookError(error) && error.code === "conflict") return undefined;
            throw error;
          });
        if (made === undefined) {
          assert.equal(expected, "refused");
          break;
        }
        if (expected !== "created") assert.deepEqual([made.id, made.created], [holder?.id, false]);
        const { params } = await at.tenant(tenant).jobs.get(made.id);
        const found = made.created ? "created" : (params as { n: number }).n === n ? "replaced" : "kept";
        assert.equal(found, expected);
        if (found === "replaced" && holder !== undefined) holder.dueAt = now() + delayMs;
        if (found === "created") {
          const until = now() + windowMs;
          all.push({ id: made.id, tenant, key, scope, until, dueAt: now() + delayMs, attempt: 1, state: "open", n });
        }
        break;
      }
      case "claim": {
        const { claim } = await at.turn(1, by, { lookForDue: true });
        const [claimed] = claim.jobs;
        const due = all.filter((entry) => entry.state === "open" && entry.dueAt <= now());
        assert.equal(claimed === undefined, due.length === 0);
        const entry = all.find(({ id }) => id === claimed?.id);
        if (claimed === undefined || entry === undefined) break;
        entry.state = "running";
        claims.set(entry.id, claimed);
        break;
      }
      case "succeed":
      case "fail": {
        const entry = pick(
          all.filter(({ state }) => state === "running"),
          each.which,
        );
        if (entry === undefined) break;
        await at.end(claims.get(entry.id) as ClaimedJob, { status: each.do === "fail" ? "error" : "success" });
        entry.state = "ended";
        const { retriedBy } = await at.tenant(entry.tenant).jobs.get(entry.id);
        assert.equal(retriedBy !== null, each.do === "fail" && entry.attempt === 1);
        // The retry takes over a key that is held until the work is done; a window stays with the first.
        if (retriedBy !== null) {
          all.push({ ...entry, id: retriedBy, attempt: 2, state: "open", dueAt: now() + 20, until: 0 });
        }
        break;
      }
      case "cancel": {
        const entry = pick(
          all.filter(({ state }) => state === "open"),
          each.which,
        );
        if (entry === undefined) break;
        await at.tenant(entry.tenant).jobs.cancel(entry.id);
        entry.state = "ended";
        break;
      }
      case "pass":
        await at.clock.advance(each.ms);
        break;
    }
  }
}
