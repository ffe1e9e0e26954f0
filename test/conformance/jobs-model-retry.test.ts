import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../support/property.ts";
import { isDaybookError, job } from "../../src/index.ts";
import { begin } from "../../src/jobs/alone.ts";
import type { ClaimedJob } from "../../src/jobs/claim.ts";
import { sweep } from "../../src/jobs/rescue.ts";
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
  | { do: "lose"; begun: boolean }
  | { do: "cancel" | "retry"; which: number }
  | { do: "pass" };

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("enqueue" as const), kind: fc.nat(2) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("claim" as const), want: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ do: fc.constant("end" as const), which: fc.nat(), shutdown: fc.constant(false) },
      status: fc.constantFrom("success" as const, "error" as const, "error" as const, "timed_out" as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ do: fc.constant("end" as const), which: fc.nat(), shutdown: fc.constant(true) },
      status: fc.constant("cancelled" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("lose" as const), begun: fc.boolean() }) },
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
  alone: boolean;
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
      alone: false,
      ...wanted,
    };
    all.push(made);
    const found = await at.jobs.get(made.id);
    assert.deepEqual(
      [found.attempt, found.attempts, found.losses, found.availableAt],
      [made.attempt, made.attempts, made.losses, made.dueAt],
    );
    const [row] = await at.rows<{ alone: number }>(`select alone from job where id = '${made.id}'`);
    assert.equal((row?.alone ?? 0) > 0, made.alone);
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
          ...{ id, kind, state: "open", attempt: 1, attempts, losses: 0, alone: false },
          dueAt: later(0),
          cancelling: false,
          next: false,
        });
        break;
      }
      case "claim": {
        const idle = running().length === 0;
        const { claim } = await at.turn(each.want, at.claimer(session.seq), { lookForDue: true, idle });
        for (const claimed of claim.jobs) {
          const entry = all.find(({ id }) => id === claimed.id) as Entry;
          assert.ok(entry.state === "open" && entry.dueAt <= at.clock.now());
          if (entry.alone) assert.ok(idle && claim.jobs.length === 1, "it runs alone");
          entry.state = "running";
          claims.set(entry.id, claimed);
        }
        break;
      }
      case "end": {
        const entry = pick(running(), each.which);
        if (entry === undefined) break;
        const { status, shutdown } = each;
        await at.end(claims.get(entry.id) as ClaimedJob, { status, shutdown });
        const { attempt, attempts, alone, kind } = entry;
        if (status === "success") await follow(entry, "completed", undefined);
        else if (shutdown) await follow(entry, "cancelled", { dueAt: later(0), alone: alone && kind.losses > 0 });
        else await follow(entry, "failed", attempt < attempts ? { attempt: attempt + 1, dueAt: later(10) } : undefined);
        break;
      }
      case "lose": {
        // Everything that the session ran is lost with it; what runs alone, or may not be lost, had begun or not.
        const lost = running();
        for (const entry of lost) {
          const onDisk = entry.alone || entry.kind.losses === 0;
          if (each.begun && onDisk) assert.ok(await begin(at.engine, claims.get(entry.id) as ClaimedJob));
        }
        await at.run(
          `update session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${session.seq}`,
        );
        session = await at.newSession();
        assert.equal(await sweep(at.engine), lost.length);
        assert.equal(await sweep(at.engine), 0);
        for (const entry of lost) {
          const most = entry.kind.losses;
          const charged = each.begun && entry.alone && most > 0 ? 1 : 0;
          const losses = entry.losses + charged;
          const givenUp = each.begun && (entry.alone || most === 0) && losses >= most;
          entry.losses = losses;
          await follow(entry, "failed", givenUp ? undefined : { losses, alone: most > 0, dueAt: later(0) });
          assert.ok((await at.jobs.get(entry.id)).losses <= most);
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
        const [row] = await at.rows<{ alone: number }>(`select alone from job where id = '${last.id}'`);
        await follow({ ...last, cancelling: false }, last.state, { ...counts, alone: (row?.alone ?? 0) > 0 });
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
