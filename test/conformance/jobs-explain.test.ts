import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, type Explanation } from "../../src/index.ts";
import { hostNames, writeHosted } from "../../src/jobs/host.ts";
import { recoverSession } from "../../src/jobs/settle/rescue.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, type Backend } from "../support/open-test.ts";
import type { TestContext } from "node:test";

type Account = { readonly account: string };
const run = (_params: Account): void => undefined;
const plain = job("plain", { attempts: 3, backoff: ["1m"], run });
const single = job("single", { concurrency: 1, run });
const keyed = job("keyed", { limit: { key: ({ account }) => account, concurrency: 1 }, run });
const rated = job("rated", { rate: { max: 1, per: "1h" }, run });
const use = [plain, single, keyed, rated];
const a = { account: "a" };
// Twenty past midnight.
const now = "2026-01-01T00:20:00.000Z";

// Each kind of waiting and gate: how a job comes to it, and what explain then says.
const cases: Record<string, { reach(at: TestEngine): Promise<string>; reason: string; says: RegExp }> = {
  "a time": {
    reach: async (at) => (await at.jobs.enqueue(plain, a, { in: "90s" })).id,
    reason: "time",
    says: /^It waits until 2026-01-01T00:21:30.000Z \(1m 30s from now\): it was enqueued for then\.$/,
  },
  "a time that has come, and nobody to see it": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a, { in: "90s" });
      await at.clock.advance(100_000);
      return id;
    },
    reason: "host",
    says: /^No running session hosts plain: .+ Its time came at 2026-01-01T00:21:30.000Z \(10s ago\): it was enqueued for then\.$/,
  },
  "a time that has come, and a host": {
    async reach(at) {
      await host(at);
      const { id } = await at.jobs.enqueue(plain, a, { in: "90s" });
      await at.clock.advance(100_000);
      return id;
    },
    reason: "time",
    says: /^Its time came at 2026-01-01T00:21:30.000Z \(10s ago\): .+\. Session <session> runs plain and will take it at its next claim\.$/,
  },
  "the backoff of a retry": {
    reach: (at) => retried(at),
    reason: "time",
    says: /^It waits until 2026-01-01T00:21:00.000Z \(1m from now\): it is attempt 2 of 3, after a backoff\.$/,
  },
  "a rate": {
    reach: (at) => second(at, rated),
    reason: "rate",
    says: /^It waits until 2026-01-01T01:00:00.000Z \(40m from now\): at most 1 of its rate may start per 1h, and 1 did\.$/,
  },
  "a rate, with others before it": {
    async reach(at) {
      await second(at, rated);
      await at.jobs.enqueue(rated, a, { priority: 1 });
      const { id } = await at.jobs.enqueue(rated, a);
      await at.claim(9);
      return id;
    },
    reason: "rate",
    says: /: at most 1 of its rate may start per 1h, and 1 did\. Before it in its queue, 2 wait for the rate\.$/,
  },
  "a rate that has opened, and nobody to see it": {
    async reach(at) {
      const id = await second(at, rated);
      await at.clock.advance(3_600_000);
      return id;
    },
    reason: "host",
    says: /^No running session hosts rated: .+ At most 1 of its rate may start per 1h; since 2026-01-01T01:00:00.000Z 0 did, and it is let in after those before it\.$/,
  },
  "a free place behind one in a closed queue": {
    async reach(at) {
      await at.jobs.enqueue(single, a);
      const [running] = await at.claim(1);
      await at.jobs.enqueue(single, a);
      const { id } = await at.jobs.enqueue(single, a);
      await at.claim(2);
      await at.queues.pause("default");
      await at.end(running as never, { status: "success" });
      return id;
    },
    reason: "paused",
    says: /^The queue default is paused since .+\. At most 1 of single may run at the same time; 0 do, and those that were let in before it have the first choice\.$/,
  },
  "a key": {
    reach: (at) => second(at, keyed),
    reason: "key",
    says: /^At most 1 with limit key "a" may run at the same time, and 1 do: <running>\.$/,
  },
  "a name": {
    reach: (at) => second(at, single),
    reason: "key",
    says: /^At most 1 of single may run at the same time, and 1 do: <running>\.$/,
  },
  "a host, parked": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.claim(1, { ...at.claimer(), hosts: new Set() });
      return id;
    },
    reason: "host",
    says: /^No running session hosts plain: start a process that lists it in "use"\.$/,
  },
  "a host, in line": {
    reach: async (at) => (await at.jobs.enqueue(plain, a)).id,
    reason: "host",
    says: /^No running session hosts plain: start a process that lists it in "use"\. 0 jobs stand before it in queue default\.$/,
  },
  "a host that serves its queue, parked": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.claim(1, { ...at.claimer(), hosts: new Set() });
      await hostNames(at.engine, { ...at.claimer(), queues: new Set(["other", "third"]) });
      return id;
    },
    reason: "host",
    says: /^No session that hosts plain serves queue default: start a worker that does, or one without "queues"\.$/,
  },
  "a host that serves its queue, in line": {
    async reach(at) {
      await hostNames(at.engine, { ...at.claimer(), queues: new Set(["other"]) });
      return (await at.jobs.enqueue(plain, a)).id;
    },
    reason: "host",
    says: /^No session that hosts plain serves queue default: .+ 0 jobs stand before it in queue default\.$/,
  },
  "a host that serves its queue among others and has come": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.claim(1, { ...at.claimer(), hosts: new Set() });
      await hostNames(at.engine, { ...at.claimer(), queues: new Set(["other", "default"]) });
      return id;
    },
    reason: "host",
    says: /^Session <session> runs plain and will take it at its next claim\.$/,
  },
  "a host that has come": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.claim(1, { ...at.claimer(), hosts: new Set() });
      await host(at);
      return id;
    },
    reason: "host",
    says: /^Session <session> runs plain and will take it at its next claim\.$/,
  },
  "a paused name, parked": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.jobs.pause("plain", "the printer is broken");
      await at.claim(1);
      return id;
    },
    reason: "paused",
    says: /^The name plain is paused since 2026-01-01T00:20:00.000Z: the printer is broken\.$/,
  },
  "a paused name, in line": {
    async reach(at) {
      await host(at);
      const { id } = await at.jobs.enqueue(plain, a);
      await at.jobs.pause("plain");
      return id;
    },
    reason: "paused",
    says: /^The name plain is paused since 2026-01-01T00:20:00.000Z\. 0 jobs stand before it/,
  },
  "a paused queue": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.queues.pause("default", "night");
      return id;
    },
    reason: "paused",
    says: /^The queue default is paused since 2026-01-01T00:20:00.000Z: night\. 0 jobs stand before it/,
  },
  "a full queue": {
    async reach(at) {
      await at.queues.limit("default", { concurrency: 1 });
      return second(at, plain);
    },
    reason: "limit",
    says: /^The queue default lets 1 jobs run at the same time, and 1 do\. 0 jobs stand before it/,
  },
  "the rate of a queue": {
    async reach(at) {
      await at.queues.limit("default", { rate: { max: 1, per: "1h" } });
      return second(at, plain);
    },
    reason: "rate",
    says: /^The queue default starts at most 1 jobs per 1h; the next window opens 2026-01-01T01:00:00.000Z\. 0 jobs/,
  },
  "being alone": {
    async reach(at) {
      await host(at);
      await at.jobs.enqueue(plain, a);
      for (let losses = 0; losses < 2; losses++) {
        const lost = await at.newSession();
        await at.claim(1, at.claimer(lost.seq));
        await at.store.write((tx) => recoverSession(tx, { kinds: {} }, lost.seq));
      }
      await at.claim(1);
      return last(at);
    },
    reason: "alone",
    says: /^Its process was lost twice while it ran, so it runs alone, once a session has nothing else to run\. Session <session> runs plain\.$/,
  },
  "its place in line": {
    async reach(at) {
      await host(at);
      await at.jobs.enqueueMany(plain, [a, a], { priority: 1 });
      const { id } = await at.jobs.enqueue(plain, a);
      await at.jobs.enqueue(plain, a, { priority: 1 });
      await at.jobs.enqueue(plain, a);
      return id;
    },
    reason: "place",
    says: /^3 jobs stand before it in queue default\. Session <session> runs plain\.$/,
  },
  "nothing: it runs": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.claim(1);
      return id;
    },
    reason: "running",
    says: /^It runs since 2026-01-01T00:20:00.000Z in session <session> \(process \d+ on .+\)\.$/,
  },
  "nothing: it was asked to cancel": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.claim(1);
      await at.jobs.cancel(id);
      return id;
    },
    reason: "running",
    says: /^It runs since .*\. It was asked to cancel and has not ended yet\.$/,
  },
  "nothing: it was cancelled": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      await at.jobs.cancel(id);
      return id;
    },
    reason: "cancelled",
    says: /^It was cancelled at 2026-01-01T00:20:00.000Z, before it ran\.$/,
  },
  "nothing: it failed and is retried": {
    async reach(at) {
      const retry = await retried(at);
      return (await at.jobs.get(retry)).retryOf ?? "";
    },
    reason: "failed",
    says: /^Its run ended as error at 2026-01-01T00:20:00.000Z: RangeError: too far\. Job <last> tries again\.$/,
  },
  "nothing: it is done": {
    async reach(at) {
      const { id } = await at.jobs.enqueue(plain, a);
      const [claimed] = await at.claim(1);
      await at.end(claimed as never, { status: "success" });
      return id;
    },
    reason: "completed",
    says: /^Its run ended as success at 2026-01-01T00:20:00.000Z\.$/,
  },
};

for (const backend of backends) {
  describe(backend, () => {
    for (const [what, { reach, reason, says }] of Object.entries(cases)) {
      test(`explain says that a job waits for ${what}`, async (t) => {
        const at = await openAt(t, backend);
        const id = await reach(at);

        const explained = await at.jobs.explain(id);

        assert.equal(explained.id, id);
        assert.equal(explained.status, (await at.jobs.get(id)).status);
        assert.equal(explained.reason, reason);
        assert.match(await named(at, explained), says);
      });
    }
  });
}

async function openAt(t: TestContext, backend: Backend): Promise<TestEngine> {
  const at = await openEngine(t, backend === "sqlite" ? "memory" : backend, { use });
  await at.clock.advance(Date.parse(now) - at.clock.now());
  return at;
}

/** A job of this kind that was claimed after another one of it. */
async function second(at: TestEngine, of: typeof plain): Promise<string> {
  await at.jobs.enqueue(of, a);
  const { id } = await at.jobs.enqueue(of, a);
  await at.claim(2);
  return id;
}

async function retried(at: TestEngine): Promise<string> {
  await at.jobs.enqueue(plain, a);
  const [claimed] = await at.claim(1);
  await at.end(claimed as never, { status: "error", error: { type: "RangeError", message: "too far", trace: null } });
  return last(at);
}

async function last(at: TestEngine): Promise<string> {
  return (await at.jobs.list()).items[0]?.id ?? "";
}

/** As a worker of the session does when it starts. */
async function host(at: TestEngine): Promise<void> {
  await at.store.write((tx) => writeHosted(tx, at.session.seq, ["plain"], null));
}

/** The sentences, with what differs from run to run by its role. */
async function named(at: TestEngine, explained: Explanation): Promise<string> {
  const running = (await at.jobs.list({ status: "running" })).items[0]?.id ?? "nobody runs";
  const text = explained.because.join(" ").replaceAll(at.session.id, "<session>").replaceAll(running, "<running>");
  return text.replaceAll(await last(at), "<last>");
}
