// The same story, told on a book whose worker has run thousands of quick jobs and on one that was just opened, comes out the
// same: what starts and in which order, what stands in line and where, and when everything began and ended.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, type JobContext } from "../../src/index.ts";
import type { Engine } from "../../src/jobs/engine.ts";
import { manualClock } from "../../src/core/manual-clock.ts";
import { neverBlamed } from "../../src/jobs/settle/settle.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import { startWorker, type Worker } from "../../src/jobs/worker/start-worker.ts";
import type { Store } from "../../src/storage/store.ts";
import type { SessionKey } from "../../src/telemetry/session.ts";
import { declareDead, reservationsOf } from "../jobs/direct.ts";
import { assertInvariants, empty, pick } from "../jobs/model.ts";
import { openEngine, type EngineOptions, type TestEngine } from "../jobs/open-engine.ts";
import { backends, bookUrl, type Backend } from "../support/open-test.ts";
import { fc, isProof, seed } from "../support/property.ts";

// Not the share of two lanes or of four.
const places = 3;
const quickJobs = 3000;
const sweepMs = 15_000;
// All that is timed in a story falls on whole steps.
const stepMs = 100;

const lanes = {
  line: { tenant: "default", queue: "line" },
  side: { tenant: "default", queue: "side" },
  acme: { tenant: "acme", queue: "line" },
} as const;

type Command =
  | {
      do: "enqueue";
      kind: "work" | "rated";
      lane: keyof typeof lanes;
      priority: number;
      count: number;
      delayMs: number;
    }
  | { do: "end"; which: number; how: "success" | "failure"; times: number; together: boolean }
  | { do: "pause" | "resume"; what: "queue" | "work" | "rated" }
  | { do: "move"; which: number; to: "first" | "last" }
  | { do: "cancel"; which: number }
  | { do: "pass"; ms: number }
  | { do: "limit"; to: "one" | "rate" | "none" }
  | { do: "reserve" | "release" | "join" | "leave" | "crash" };

const does = <Name extends string>(...names: readonly [Name, ...Name[]]): fc.Arbitrary<Name> =>
  fc.constantFrom(...names);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      do: does("enqueue"),
      kind: does("work", "work", "work", "rated"),
      priority: fc.constantFrom(0, 5),
      count: fc.integer({ min: 1, max: 12 }),
      lane: does("line", "line", "line", "side", "acme"),
      delayMs: fc.constantFrom(0, 0, 0, 0, 0, 0, 300),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      do: does("end"),
      which: fc.nat(),
      how: does("success", "success", "success", "failure"),
      times: fc.integer({ min: 1, max: 4 }),
      together: fc.boolean(), // else one after the other: the second turn finds what the first has learned
    }),
  },
  // What closes a lane is undone soon: in an open one there is more to see.
  {
    weight: 6,
    arbitrary: fc.record({ do: does("pause", "resume", "resume"), what: does("queue", "queue", "work", "rated") }),
  },
  { weight: 4, arbitrary: fc.record({ do: does("move"), which: fc.nat(), to: does("first", "last") }) },
  { weight: 1, arbitrary: fc.record({ do: does("cancel"), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: does("pass"), ms: fc.constantFrom(300, 1000, 12_000) }) },
  { weight: 2, arbitrary: fc.record({ do: does("limit"), to: does("one", "rate", "none", "none", "none") }) },
  { weight: 2, arbitrary: fc.record({ do: does("reserve", "release", "release") }) },
  { weight: 1, arbitrary: fc.record({ do: does("crash") }) },
  { weight: 2, arbitrary: fc.record({ do: does("join", "leave") }) },
);

const fill: Command = { do: "enqueue", kind: "work", lane: "line", priority: 0, count: 12, delayMs: 0 };
const end = (times: number, together = false): Command => ({ do: "end", which: 0, how: "success", times, together });

/** Told before all that are drawn: a worker that has just run job after job of a lane meets what must change its course. */
const always: readonly [Command[]][] = [
  [[fill, end(2), { do: "pause", what: "queue" }, end(3), { do: "resume", what: "queue" }, end(2)]],
  [[fill, end(2), { do: "pause", what: "work" }, end(3), { do: "resume", what: "work" }, end(2)]],
  [[fill, end(2), { do: "limit", to: "rate" }, end(3), { do: "pass", ms: 1000 }, end(2)]],
  [[fill, end(2), { do: "limit", to: "one" }, end(3), { do: "limit", to: "none" }, end(2)]],
  [[fill, end(2), { do: "reserve" }, end(3), { do: "release" }, end(2)]],
  [[fill, end(2), { ...fill, priority: 5, count: 3 }, end(2), { do: "move", which: 4, to: "first" }, end(2)]],
  [[fill, { ...fill, lane: "side" }, end(3, true), end(3, true), end(3, true), { do: "crash" }, end(2)]],
];

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, it happens on a warm worker as on a cold one", async (t) => {
      const numRuns = Number(process.env["DAYBOOK_TEST_RUNS"] ?? (isProof ? 40 : backend === "sqlite" ? 8 : 5));
      t.diagnostic(`${numRuns} stories from seed ${seed}`);
      const warm = await openWorld(t, backend);
      await warm.warmUp(quickJobs);
      const stories = fc.array(command, { minLength: 5, maxLength: 40, size: "max" });
      // A worker is as cold as its process is new. Its book may be older: a database takes long to make.
      const clock = manualClock();
      const url = backend === "sqlite" ? undefined : await bookUrl(t, backend);
      const property = fc.asyncProperty(stories, async (commands) => {
        await warm.warmUp(50);
        await clock.advance(sweepMs - (clock.now() % sweepMs)); // rates go by whole seconds
        const cold = await openWorld(t, backend, url === undefined ? {} : { url, clock });
        const told = [await tell(warm, commands), await tell(cold, commands)];
        await cold.close();
        assert.deepEqual(told[0], told[1]);
      });
      await fc.assert(property, {
        numRuns,
        examples: [...always],
        endOnFailure: process.env["DAYBOOK_TEST_SHRINK"] === undefined,
      });
      await warm.close();
    });
  });
}

type Begun = { readonly n: number; readonly at: number; readonly context: JobContext };
type Running = Begun & { succeed(): void; fail(error: unknown): void };

type World = {
  readonly at: TestEngine;
  readonly openedAt: number;
  /** Those that run, as they began. */
  readonly running: Running[];
  /** What began since this was last emptied. */
  readonly began: Begun[];
  warmUp(quick: number): Promise<void>;
  /** Resolves when the workers have nothing under way and nothing to do. */
  quiet(): Promise<void>;
  pass(ms: number): Promise<void>;
  join(): Promise<void>;
  leave(): Promise<void>;
  /** The worker's session is taken for dead, and goes on as a new one. */
  crash(): Promise<void>;
  close(): Promise<void>;
};

async function openWorld(
  t: TestContext,
  backend: Backend,
  place: Pick<EngineOptions, "url" | "clock"> = {},
): Promise<World> {
  const running: Running[] = [];
  const began: Begun[] = [];
  const run = ({ n }: { n: number }, context: JobContext): Promise<void> =>
    new Promise((resolve, reject) => {
      const self: Running = { n, at: at.clock.now(), context, succeed: resolve, fail: reject };
      running.push(self);
      began.push(self);
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
  const at = await openEngine(t, backend === "sqlite" ? "memory" : backend, { use, ...place });
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
  for (const { tenant, queue } of Object.values(lanes)) {
    const { jobs } = at.tenant(tenant);
    await jobs.cancel((await jobs.enqueue("work", { n: 0 }, { queue })).id);
  }
  let session = await at.newSession();
  const options = { concurrency: places, grace: 0 };
  const worker = await startWorker(
    newEngine(() => session),
    options,
  );
  const openedAt = at.clock.now();
  let second: Worker | undefined;
  // Time stands still while a transaction is under way, which on PostgreSQL takes some.
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left >= 0; left -= stepMs) {
      await quiet();
      await at.clock.advance(Math.min(left, stepMs));
      await quiet();
    }
  };

  return {
    at,
    openedAt,
    running,
    began,
    quiet,
    pass,
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
      await pass(0);
      await stopping;
    },
    async crash() {
      await declareDead(at, session);
      await sweep(at.engine);
      await quiet();
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
  // SQLite has one writer. On PostgreSQL which of two transactions comes first is chance, so they come one after the other.
  let last: Promise<unknown> = Promise.resolve();
  const alone = <R>(write: () => Promise<R>): Promise<R> => {
    const done = store.dialect === "sqlite" ? write() : last.then(write);
    last = done.catch(() => undefined);
    return done;
  };
  return {
    store: {
      ...store,
      random: () => 0.5,
      read: counted(store.read) as Store["read"],
      write: counted((...args: Parameters<Store["write"]>) => alone(() => store.write(...args))) as Store["write"],
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
  await world.pass(sweepMs - ((at.clock.now() - world.openedAt) % sweepMs));
  await world.warmUp(1);
  await at.run("delete from daybook_run");
  await at.run("delete from daybook_job");
  const began = at.clock.now();
  const seen: string[] = [];
  const story = createStory(world);
  for (const each of commands) {
    await story.play(each);
    await world.quiet();
    await story.check(each);
    // Of two workers that claim at once, who is told first is chance.
    const starts = world.began.splice(0).map(({ n, context }) => `${n}#${context.attempt}`);
    seen.push(`${JSON.stringify(each)}: ${starts.toSorted().join(" ")} | ${await look(at)}`);
  }
  await story.finish();
  seen.push(...(await times(at, began)));
  await assertInvariants(at);
  return seen;
}

const bounds = {
  one: { concurrency: 1, rate: null },
  rate: { concurrency: null, rate: { max: 1, per: "1s" } },
  none: { concurrency: null, rate: null },
} as const;

function createStory(world: World) {
  const { at } = world;
  let made = 0;
  let joined = false;
  let held: { readonly id: string; readonly by: SessionKey } | undefined;
  const inLine = (): Promise<{ id: string }[]> =>
    at.rows(`select id from daybook_job_now where status in ('queued', 'waiting') and tenant_id = 'default'
      order by priority desc, position, seq`);

  const paused = new Set<string>();
  let bound: keyof typeof bounds = "none";
  let startsBySecond = new Map<string, number>();

  /** Whether what began since the last command might begin: both worlds could be wrong in the same way. */
  async function check(each: Command): Promise<void> {
    assert.ok(world.running.length <= (joined ? 2 * places : places), "more run than there are places");
    const begun = ofDefault(world.began);
    for (const each of begun) {
      assert.ok(!paused.has(each.context.job.name), "a paused name began");
      if (each.context.job.name === "rated") assertRate("rated", each, 2);
    }
    const inLane = begun.filter(({ context }) => context.job.queue === "line");
    if (inLane.length === 0) return;
    assert.ok(!paused.has("queue"), "a job of a paused queue began");
    // Other commands may put a job in front after another has begun.
    if (each.do === "enqueue" || (each.do === "end" && each.how === "success")) await assertOrder(inLane);
    const reserved = `select id from daybook_reservation where status = 'active' and expires_at > ${at.clock.now()}`;
    assert.deepEqual(await at.rows(reserved), [], "a job of a reserved queue began");
    if (bound === "rate") for (const each of inLane) assertRate("line", each, 1);
    const run = ofDefault(world.running).filter(({ context }) => context.job.queue === "line");
    if (bound === "one") assert.ok(run.length <= 1, "a job of a full queue began");
  }

  async function assertOrder(inLane: readonly Begun[]): Promise<void> {
    const ids = inLane.map(({ context }) => `'${context.job.runId}'`).join(", ");
    const passed =
      await at.rows(`select line.seq from daybook_line line join daybook_line run on run.lane_seq = line.lane_seq
      where run.run_id in (${ids}) and line.status = 'queued'
        and (line.priority > run.priority or (line.priority = run.priority and line.position < run.position))`);
    assert.deepEqual(passed, [], "a job began before one that stands in front of it");
  }

  const ofDefault = (begun: readonly Begun[]): Begun[] =>
    begun.filter(({ context }) => context.job.tenant === "default");

  function assertRate(what: string, { at: startedAt }: Begun, max: number): void {
    const second = `${what} ${Math.floor(startedAt / 1000)}`;
    const count = (startsBySecond.get(second) ?? 0) + 1;
    startsBySecond.set(second, count);
    assert.ok(count <= max, `${count} of ${what} began in a second`);
  }

  async function play(each: Command): Promise<void> {
    switch (each.do) {
      case "enqueue": {
        const params = Array.from({ length: each.count }, () => ({ n: made++ }));
        const { tenant, queue } = lanes[each.lane];
        await at
          .tenant(tenant)
          .jobs.enqueueMany(each.kind, params, { queue, priority: each.priority, in: each.delayMs });
        return;
      }
      case "end": {
        for (let time = 0; time < each.times; time++) {
          const ended = pick(world.running, each.which);
          if (ended === undefined) return;
          world.running.splice(world.running.indexOf(ended), 1);
          if (each.how === "success") ended.succeed();
          else ended.fail(new Error("no"));
          if (!each.together) await world.quiet();
        }
        return;
      }
      case "pause":
      case "resume":
        if (each.do === "pause") paused.add(each.what);
        else paused.delete(each.what);
        return each.what === "queue" ? at.queues[each.do]("line") : at.jobs[each.do](each.what);
      case "move":
      case "cancel": {
        const id = pick(await inLine(), each.which)?.id;
        if (id === undefined) return;
        if (each.do === "move") await at.jobs.move(id, each.to);
        else await at.jobs.cancel(id);
        return;
      }
      case "limit":
        bound = each.to;
        startsBySecond = new Map();
        return at.queues.limit("line", bounds[each.to]);
      case "pass":
        return world.pass(each.ms);
      case "reserve": {
        if (held !== undefined) return;
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
    check,
    /** Everything may run again, and all that is left does. */
    async finish(): Promise<void> {
      await play({ do: "limit", to: "none" });
      for (const what of ["queue", "work", "rated"] as const) await play({ do: "resume", what });
      await play({ do: "release" });
      for (let round = 0; round < 200 && (await at.rows("select seq from daybook_line")).length > 0; round++) {
        await world.quiet();
        while (world.running.length > 0) await play({ do: "end", which: 0, how: "success", times: 1, together: true });
        await world.quiet();
        if (world.running.length === 0) await world.pass(500);
      }
      await play({ do: "leave" });
      await world.quiet();
      assert.deepEqual(await at.rows("select seq from daybook_line"), [], "something waits for ever");
      world.began.length = 0;
    },
  };
}

type Row = {
  params: string;
  attempt: number;
  status: string;
  waits_for: string | null;
  id: string;
  tenant_id: string;
};

/** What is open, in the order of the line, with the place of those that have one. */
async function look(at: TestEngine): Promise<string> {
  const rows =
    await at.rows<Row>(`select tenant_id, id, params, attempt, status, waits_for from daybook_job_now where finished_at is null
    order by status, tenant_id, priority desc, position, seq`);
  const all = rows.map(async ({ tenant_id, id, params, attempt, status, waits_for }) => {
    const { n } = JSON.parse(params) as { n: number };
    const place = status === "queued" ? ` ${(await at.tenant(tenant_id).jobs.place(id))?.place}` : "";
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
