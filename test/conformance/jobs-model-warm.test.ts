// The same story, told on a book whose worker has run thousands of quick jobs and on one that was just opened, comes out the
// same: what starts and in which order, what stands in line and where, and when everything began and ended.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, type JobContext } from "../../src/index.ts";
import type { Engine } from "../../src/jobs/engine.ts";
import { neverBlamed } from "../../src/jobs/outcome.ts";
import { sweep } from "../../src/jobs/rescue.ts";
import { startWorker } from "../../src/jobs/worker/start-worker.ts";
import type { Worker } from "../../src/jobs/worker/worker-options.ts";
import type { Store } from "../../src/storage/store.ts";
import type { SessionKey } from "../../src/telemetry/session.ts";
import { declareDead, reservationsOf } from "../jobs/direct.ts";
import { assertInvariants, empty, pick } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { fc, isProof, seed } from "../support/property.ts";

const places = 2;
const quickJobs = 3000;
const sweepMs = 15_000;

type Command =
  | { do: "enqueue"; kind: "work" | "rated"; priority: number; count: number }
  | { do: "end"; which: number; how: "success" | "failure" }
  | { do: "pause" | "resume"; what: "queue" | "work" | "rated" }
  | { do: "move"; which: number; to: "first" | "last" }
  | { do: "cancel"; which: number }
  | { do: "pass"; ms: number }
  | { do: "reserve" | "release" | "join" | "leave" | "crash" };

const does = <Name extends string>(...names: readonly [Name, ...Name[]]): fc.Arbitrary<Name> =>
  fc.constantFrom(...names);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 7,
    arbitrary: fc.record({
      do: does("enqueue"),
      kind: does("work", "work", "rated"),
      priority: fc.constantFrom(0, 0, 5),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: does("end"), which: fc.nat(), how: does("success", "success", "failure") }),
  },
  { weight: 3, arbitrary: fc.record({ do: does("pause", "resume"), what: does("queue", "work", "rated") }) },
  { weight: 2, arbitrary: fc.record({ do: does("move"), which: fc.nat(), to: does("first", "last") }) },
  { weight: 1, arbitrary: fc.record({ do: does("cancel"), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: does("pass"), ms: fc.constantFrom(300, 1000, 12_000) }) },
  { weight: 2, arbitrary: fc.record({ do: does("reserve", "release") }) },
  { weight: 1, arbitrary: fc.record({ do: does("crash") }) },
  { weight: 2, arbitrary: fc.record({ do: does("join", "leave") }) },
);

// On SQLite, in memory: there the order of all that happens is the story's own. On PostgreSQL which of two transactions
// comes first is chance, so its warm workers are tested fact by fact (jobs-warm.test.ts).
for (const backend of ["sqlite"] as const) {
  describe(backend, () => {
    test("whatever happens, it happens on a warm worker as on a cold one", async (t) => {
      const numRuns = Number(process.env["DAYBOOK_TEST_RUNS"] ?? (isProof ? 40 : 12));
      t.diagnostic(`${numRuns} stories from seed ${seed}`);
      const warm = await openWorld(t);
      await warm.warmUp(quickJobs);
      const stories = fc.array(command, { minLength: 5, maxLength: 40, size: "max" });
      const property = fc.asyncProperty(stories, async (commands) => {
        await warm.warmUp(50);
        const cold = await openWorld(t);
        const told = [await tell(warm, commands), await tell(cold, commands)];
        await cold.close();
        assert.deepEqual(told[0], told[1]);
      });
      await fc.assert(property, { numRuns, endOnFailure: process.env["DAYBOOK_TEST_SHRINK"] === undefined });
      await warm.close();
    });
  });
}

type Running = { readonly n: number; readonly context: JobContext; succeed(): void; fail(error: unknown): void };

type World = {
  readonly at: TestEngine;
  readonly openedAt: number;
  /** Those that run, as they began. */
  readonly running: Running[];
  /** What began since this was last emptied. */
  readonly began: string[];
  warmUp(quick: number): Promise<void>;
  /** Resolves when the workers have nothing under way and nothing to do. */
  quiet(): Promise<void>;
  join(): Promise<void>;
  leave(): Promise<void>;
  /** The worker's session is taken for dead, and goes on as a new one. */
  crash(): Promise<void>;
  close(): Promise<void>;
};

async function openWorld(t: TestContext): Promise<World> {
  const running: Running[] = [];
  const began: string[] = [];
  const run = ({ n }: { n: number }, context: JobContext): Promise<void> =>
    new Promise((resolve, reject) => {
      const self: Running = { n, context, succeed: resolve, fail: reject };
      running.push(self);
      began.push(`${n}#${context.attempt}`);
      context.signal.addEventListener("abort", () => {
        if (running.includes(self)) running.splice(running.indexOf(self), 1);
        reject(context.signal.reason as Error);
      });
    });
  const common = { queue: "line", attempts: 2, backoff: ["0ms"], losses: neverBlamed, run } as const;
  const use = [
    job("quick", { queue: "quick", run: () => undefined }),
    job("work", common),
    job("rated", { ...common, rate: { max: 2, per: "1s" } }),
  ];
  const at = await openEngine(t, "memory", { use });
  const { store, quiet } = watched(at.store);
  const ears = new Set<() => void>();
  const newEngine = (session: () => SessionKey): Engine => ({
    ...at.engine,
    store,
    session,
    onTimely(hear) {
      ears.add(hear);
      return () => ears.delete(hear);
    },
  });
  let session = await at.newSession();
  const options = { concurrency: places, grace: 0 };
  const worker = await startWorker(
    newEngine(() => session),
    options,
  );
  const openedAt = at.clock.now();
  let second: Worker | undefined;

  return {
    at,
    openedAt,
    running,
    began,
    quiet,
    async warmUp(count) {
      await at.jobs.enqueueMany(
        "quick",
        Array.from({ length: count }, () => ({})),
      );
      await quiet();
      assert.deepEqual(await at.rows("select seq from daybook_line"), []);
    },
    async join() {
      if (second !== undefined) return;
      const own = await at.newSession();
      second = await startWorker(
        newEngine(() => own),
        options,
      );
    },
    async leave() {
      const stopping = second?.stop();
      second = undefined;
      await at.clock.advance(0);
      await stopping;
    },
    async crash() {
      await declareDead(at, session);
      await sweep(at.engine);
      session = await at.newSession();
      for (const hear of ears) hear();
    },
    async close() {
      await worker.stop();
      await at.store.close();
    },
  };
}

/** A store that knows whether anything is under way. A worker that has work to do asks for it within a turn of the loop.
 *  Its workers sweep every 15 s to the millisecond. */
function watched(store: Store): { store: Store; quiet(): Promise<void> } {
  let open = 0;
  const counted = <A extends unknown[], R>(ask: (...args: A) => Promise<R>) => {
    return (...args: A): Promise<R> => {
      open++;
      return ask(...args).finally(() => open--);
    };
  };
  return {
    store: {
      ...store,
      random: () => 0.5,
      read: counted(store.read) as Store["read"],
      write: counted(store.write),
    },
    async quiet() {
      for (let still = 0; still < 10; still = open === 0 ? still + 1 : 0) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

/** Plays the story and writes down what could be seen after each command. */
async function tell(world: World, commands: readonly Command[]): Promise<string[]> {
  const { at } = world;
  await empty(at);
  // A sweep lets in what is due, so it comes at the same moments of the story; and so does the turn of the lanes.
  await at.clock.advance(sweepMs - ((at.clock.now() - world.openedAt) % sweepMs));
  await world.warmUp(1);
  await at.run("delete from daybook_run");
  await at.run("delete from daybook_job");
  const began = at.clock.now();
  const seen: string[] = [];
  const story = createStory(world);
  for (const each of commands) {
    await story.play(each);
    await world.quiet();
    // Of two workers that claim at once, who is told first is chance.
    seen.push(`${JSON.stringify(each)}: ${world.began.splice(0).toSorted().join(" ")} | ${await look(at)}`);
    assert.ok(world.running.length <= story.places(), "no more run than there are places");
  }
  await story.finish();
  seen.push(...(await times(at, began)));
  await assertInvariants(at);
  return seen;
}

function createStory(world: World) {
  const { at } = world;
  let made = 0;
  let joined = false;
  let held: { readonly id: string; readonly by: SessionKey } | undefined;
  const inLine = (): Promise<{ id: string }[]> =>
    at.rows(
      "select id from daybook_job_now where status in ('queued', 'waiting') order by priority desc, position, seq",
    );

  async function play(each: Command): Promise<void> {
    switch (each.do) {
      case "enqueue": {
        const params = Array.from({ length: each.count }, () => ({ n: made++ }));
        await at.jobs.enqueueMany(each.kind, params, { priority: each.priority });
        return;
      }
      case "end": {
        const ended = pick(world.running, each.which);
        if (ended === undefined) return;
        world.running.splice(world.running.indexOf(ended), 1);
        if (each.how === "success") ended.succeed();
        else ended.fail(new Error("no"));
        return;
      }
      case "pause":
      case "resume":
        if (each.what !== "queue") return at.jobs[each.do](each.what);
        if (made > 0) await at.queues[each.do]("line");
        return;
      case "move":
      case "cancel": {
        const id = pick(await inLine(), each.which)?.id;
        if (id === undefined) return;
        if (each.do === "move") await at.jobs.move(id, each.to);
        else await at.jobs.cancel(id);
        return;
      }
      case "pass":
        return at.clock.advance(each.ms);
      case "reserve": {
        if (held !== undefined || made === 0) return;
        const by = await at.newSession();
        held = { by, id: (await reservationsOf(at, by).reserve("line")).id };
        return;
      }
      case "release":
        if (held !== undefined) await reservationsOf(at, held.by).release(held.id);
        held = undefined;
        return;
      case "join":
      case "leave":
        joined = each.do === "join";
        return world[each.do]();
      case "crash":
        return world.crash();
    }
  }

  return {
    play,
    places: () => (joined ? 2 * places : places),
    /** Everything may run again, and all that is left does. */
    async finish(): Promise<void> {
      for (const what of ["queue", "work", "rated"] as const) await play({ do: "resume", what });
      await play({ do: "release" });
      for (let round = 0; round < 200 && (await at.rows("select seq from daybook_line")).length > 0; round++) {
        await world.quiet();
        while (world.running.length > 0) await play({ do: "end", which: 0, how: "success" });
        await world.quiet();
        if (world.running.length === 0) await at.clock.advance(500);
      }
      await play({ do: "leave" });
      await world.quiet();
      assert.deepEqual(await at.rows("select seq from daybook_line"), [], "something waits for ever");
      world.began.length = 0;
    },
  };
}

type Row = { params: string; attempt: number; status: string; waits_for: string | null; id: string };

/** What is open, in the order of the line, with the place of those that have one. */
async function look(at: TestEngine): Promise<string> {
  const rows =
    await at.rows<Row>(`select id, params, attempt, status, waits_for from daybook_job_now where finished_at is null
    order by status, priority desc, position, seq`);
  const all = rows.map(async ({ id, params, attempt, status, waits_for }) => {
    const { n } = JSON.parse(params) as { n: number };
    const place = status === "queued" ? ` ${(await at.jobs.place(id))?.place}` : "";
    return `${n}#${attempt} ${status}${waits_for === null ? "" : ` for ${waits_for}`}${place}`;
  });
  return (await Promise.all(all)).join(", ");
}

/** What the book keeps of each run, with times since the story began. */
async function times(at: TestEngine, began: number): Promise<string[]> {
  const rows = await at.rows<Row & { started_at: number; ended_at: number; duration_ms: number }>(`select job.params,
    job.attempt, run.status, run.started_at, run.ended_at, run.duration_ms from daybook_run run join daybook_job job on job.seq = run.job_seq
    order by run.started_at, job.params, job.seq`);
  return rows.map(({ params, attempt, status, started_at, ended_at, duration_ms }) => {
    const [from, to] = [Number(started_at) - began, Number(ended_at) - began];
    return `${params} ${attempt} ${status} ${from}–${to} ${duration_ms}`;
  });
}
