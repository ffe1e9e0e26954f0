import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../support/property.ts";
import { isDaybookError, job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { assertInvariants, pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

const kinds = [
  job("usual", { attempts: 3, losses: 2, backoff: ["10ms"], run: () => undefined }),
  job("once", { attempts: 1, losses: 1, backoff: ["10ms"], run: () => undefined }),
  job("never", { attempts: 2, losses: 0, backoff: ["10ms"], run: () => undefined }),
];

type Command =
  | { do: "enqueue"; kind: number }
  | { do: "claim"; want: number }
  | { do: "end"; which: number; status: "success" | "error" | "timed_out" | "cancelled"; shutdown: boolean }
  | { do: "cancel" | "retry"; which: number }
  | { do: "lose" | "pass" };

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("enqueue" as const), kind: fc.nat(2) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("claim" as const), want: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      which: fc.nat(),
      shutdown: fc.constant(false),
      status: fc.constantFrom("success" as const, "error" as const, "error" as const, "timed_out" as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      which: fc.nat(),
      shutdown: fc.constant(true),
      status: fc.constant("cancelled" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("lose" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("cancel" as const, "retry" as const), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pass" as const) }) },
);

// The model: for each job what it is, and what the next one of its chain must count.
type Entry = {
  id: string;
  kind: (typeof kinds)[number];
  state: "open" | "running" | "completed" | "failed" | "cancelled";
  attempt: number;
  attempts: number;
  losses: number;
  /** How often it was lost among others; after the second time it runs alone. */
  alone: number;
  dueAt: number;
  cancelling: boolean;
  next: boolean;
};

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, every chain counts its attempts and losses and ends as it should", async (t) => {
      await tellStories(t, backend, { use: kinds, command, tell });
    });
  });
}

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const all: Entry[] = [];
  const claims = new Map<string, ClaimedJob>();
  let session = await at.newSession();
  const running = (): Entry[] => all.filter(({ state }) => state === "running");

  /** The entry ended; its next one is there exactly when it should be, with the right counts. */
  async function follow(entry: Entry, state: Entry["state"], expected: Partial<Entry> | undefined): Promise<void> {
    entry.state = state;
    const { status, retriedBy } = await at.jobs.get(entry.id);
    assert.equal(status, state);
    const wanted = entry.cancelling ? undefined : expected;
    assert.equal(retriedBy !== null, wanted !== undefined, `${entry.id} is ${state}`);
    if (retriedBy === null) return;
    entry.next = true;
    const made: Entry = {
      ...entry,
      id: retriedBy,
      state: "open",
      next: false,
      cancelling: false,
      alone: 0,
      ...wanted,
    };
    all.push(made);
    const found = await at.jobs.get(made.id);
    assert.deepEqual(
      [found.attempt, found.attempts, found.losses, found.availableAt],
      [made.attempt, made.attempts, made.losses, made.dueAt],
    );
    const [row] = await at.rows<{ alone: number }>(`select alone from daybook_job_now where id = '${made.id}'`);
    assert.equal(row?.alone, made.alone);
  }
  const later = (ms: number): number => at.clock.now() + ms;

  for (const each of commands) {
    switch (each.do) {
      case "enqueue": {
        const kind = pick(kinds, each.kind);
        if (kind === undefined) break;
        const { id } = await at.jobs.enqueue(kind, {});
        const { attempts } = kind;
        all.push({
          id,
          kind,
          state: "open",
          attempt: 1,
          attempts,
          losses: 0,
          alone: 0,
          dueAt: later(0),
          cancelling: false,
          next: false,
        });
        break;
      }
      case "claim": {
        const by = at.claimer(session.seq);
        const take = (jobs: readonly ClaimedJob[], alone: boolean): void => {
          for (const claimed of jobs) {
            const entry = all.find(({ id }) => id === claimed.id) as Entry;
            assert.ok(entry.state === "open" && entry.dueAt <= at.clock.now());
            assert.equal(entry.alone === 2, alone, "what was lost twice runs alone, and nothing else does");
            entry.state = "running";
            claims.set(entry.id, claimed);
          }
        };
        take((await at.turn(each.want, by, { lookForDue: true })).claim.jobs, false);
        if (running().length === 0) take((await at.turn(1, by, { alone: true })).claim.jobs, true);
        break;
      }
      case "end": {
        const entry = pick(running(), each.which);
        if (entry === undefined) break;
        const { status, shutdown } = each;
        await at.end(claims.get(entry.id) as ClaimedJob, { status, shutdown });
        const { attempt, attempts, alone } = entry;
        if (status === "success") await follow(entry, "completed", undefined);
        else if (shutdown) await follow(entry, "cancelled", { dueAt: later(0), alone });
        else await follow(entry, "failed", attempt < attempts ? { attempt: attempt + 1, dueAt: later(10) } : undefined);
        break;
      }
      case "lose": {
        // Everything that the session ran is lost with it.
        const lost = running();
        await at.run(
          `update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${session.seq}`,
        );
        session = await at.newSession();
        assert.equal(await sweep(at.engine), lost.length);
        assert.equal(await sweep(at.engine), 0);
        for (const entry of lost) {
          const most = entry.kind.losses;
          // A cancel that was asked before the loss is what its user wanted; what it counted means nothing any more.
          if (entry.cancelling) {
            await follow(entry, "cancelled", undefined);
            continue;
          }
          const losses = entry.losses + (entry.alone === 2 ? 1 : 0);
          const next = { losses, alone: Math.min(entry.alone + 1, 2), dueAt: later(0) };
          entry.losses = losses;
          await follow(entry, "failed", losses >= most ? undefined : next);
          assert.equal((await at.jobs.get(entry.id)).losses, losses);
        }
        break;
      }
      case "cancel": {
        const entry = pick(
          all.filter(({ state }) => state === "open" || state === "running"),
          each.which,
        );
        if (entry === undefined) break;
        const { status } = await at.jobs.cancel(entry.id);
        assert.equal(status, entry.state === "open" ? "cancelled" : "cancelling");
        if (entry.state === "open") entry.state = "cancelled";
        else entry.cancelling = true;
        break;
      }
      case "retry": {
        const entry = pick(all, each.which);
        if (entry === undefined) break;
        const chain = await at.jobs.chain(entry.id);
        const last = all.find(({ id }) => id === chain.at(-1)?.id) as Entry;
        const allowed = last.state === "failed" || last.state === "cancelled";
        const made = await at.jobs.retry(entry.id).catch((error: unknown) => error);
        if (!allowed) {
          assert.ok(isDaybookError(made) && made.code === "conflict");
          break;
        }
        const attempt = last.attempt + 1;
        const counts = { attempt, attempts: Math.max(last.attempts, attempt), losses: 0, dueAt: later(0) };
        const [row] = await at.rows<{ alone: number }>(`select alone from daybook_job_now where id = '${last.id}'`);
        await follow({ ...last, cancelling: false }, last.state, { ...counts, alone: row?.alone ?? 0 });
        last.next = true;
        break;
      }
      case "pass":
        await at.clock.advance(10);
        break;
    }
  }
  await assertInvariants(at);
}
