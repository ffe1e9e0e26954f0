import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { limits } from "../../src/core/limits.ts";
import { createReadTurns, type ReadTurns } from "../../src/storage/read-turns.ts";

type Asked = { readonly name: string; finish(): Promise<void> };

/** Reads that last until they are told to finish, and the order in which they began. */
function reads(turns: ReadTurns): { began: string[]; ask(tenant: string, name: string, msMax?: number): Asked } {
  const began: string[] = [];
  return {
    began,
    ask(tenant, name, msMax = 3_600_000) {
      const gate = Promise.withResolvers<void>();
      const done = turns.run({ tenant, verb: name, msMax }, async () => {
        began.push(name);
        await gate.promise;
      });
      done.catch(() => undefined);
      return { name, finish: () => (gate.resolve(), done) };
    },
  };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("tenants that wait are served one after the other, and none has more than its share", async () => {
  const turns = createReadTurns({ atOnce: 3, perTenant: 2 });
  const { began, ask } = reads(turns);
  const a = [1, 2, 3, 4].map((n) => ask("a", `a${n}`));
  const b = [1, 2].map((n) => ask("b", `b${n}`));
  const c = [1].map((n) => ask("c", `c${n}`));
  await settle();
  assert.deepEqual(began, ["a1", "a2", "b1"]);

  for (const each of [a[0], b[0], a[1]]) {
    await each?.finish();
    await settle();
  }

  assert.deepEqual(began, ["a1", "a2", "b1", "a3", "b2", "c1"]);
  for (const each of [...a, ...b, ...c]) await each.finish();
  assert.equal(turns.running, 0);
});

test("a tenant alone has its share and no more, so that another's turn comes at once", async () => {
  const turns = createReadTurns({ atOnce: 4, perTenant: 2 });
  const { began, ask } = reads(turns);
  const a = [1, 2, 3].map((n) => ask("a", `a${n}`));
  await settle();

  const b = ask("b", "b1");
  await settle();

  assert.deepEqual(began, ["a1", "a2", "b1"]);
  for (const each of [...a, b]) await each.finish();
});

test("who waits for its turn as long as it may read is told busy, and leaves the line", async () => {
  const turns = createReadTurns({ atOnce: 1, perTenant: 1 });
  const { began, ask } = reads(turns);
  const first = ask("a", "a1");

  await assert.rejects(ask("a", "book.jobs.list", 20).finish(), {
    code: "busy",
    message:
      'book.jobs.list did not get its turn, with 0 reads of tenant "a" in line: try again in a moment, or ask for less at once',
  });

  await first.finish();
  assert.deepEqual(began, ["a1"]);
});

test(`of one tenant at most ${limits.readsWaitingMax} reads wait`, async () => {
  const turns = createReadTurns({ atOnce: 2, perTenant: 1 });
  const { began, ask } = reads(turns);
  const a = Array.from({ length: limits.readsWaitingMax + 1 }, (_, index) => ask("a", `a${index}`));

  await assert.rejects(ask("a", "one too many").finish(), { code: "busy" });
  await ask("b", "b1").finish();

  for (const each of a) await each.finish();
  assert.equal(began.length, limits.readsWaitingMax + 2);
});

test("closing ends reads that run and those that wait, also those of the same moment, and refuses new ones", async () => {
  const turns = createReadTurns({ atOnce: 2, perTenant: 1 });
  const { began, ask } = reads(turns);
  const early = [1, 2].map((n) => ask("a", `a${n}`));
  await settle();
  const late = ask("b", "b1");

  turns.close();

  for (const each of [...early, late, ask("c", "c1")]) await assert.rejects(each.finish(), { code: "closed" });
  assert.deepEqual(began, ["a1"]);
});

describe("a tenant whose reads are slow", () => {
  /** Turns in which the report of tenant a was slow, on a clock that stands still until it is told to go on. */
  async function afterSlow(t: TestContext, { slowAlone = true } = {}) {
    let now = 0;
    t.mock.method(systemClock, "monotonic", () => now);
    const turns = createReadTurns({ atOnce: 4, perTenant: 2, slowAlone });
    const { began, ask } = reads(turns);
    const go = (ms: number): void => void (now += ms);
    const slow = ask("a", "report");
    await settle();
    go(limits.readSlowMs);
    await slow.finish();
    go(limits.readsBesideMs);
    began.length = 0;
    return { began, ask, go };
  }

  test("has one of them at a time while another tenant reads, and its quick ones go on", async (t) => {
    const { began, ask } = await afterSlow(t);
    const other = ask("b", "other");

    const [first, second, quick] = [ask("a", "report"), ask("a", "report"), ask("a", "list")];
    await settle();
    assert.deepEqual(began, ["other", "report", "list"]);
    await quick.finish();
    assert.deepEqual(began, ["other", "report", "list"]);
    await first.finish();
    await settle();

    assert.deepEqual(began, ["other", "report", "list", "report"]);
    for (const each of [second, other]) await each.finish();
  });

  test("has one of them at a time when another tenant has just read, and its share a moment later", async (t) => {
    const { began, ask, go } = await afterSlow(t);
    await ask("b", "other").finish();

    const early = [ask("a", "report"), ask("a", "report")];
    await settle();
    assert.deepEqual(began, ["other", "report"]);
    go(limits.readsBesideMs + 1);
    const late = ask("a", "report");
    await settle();

    assert.deepEqual(began, ["other", "report", "report"]);
    for (const each of [...early, late]) await each.finish();
  });

  test("has its share beside the engine's own reads", async (t) => {
    const { began, ask } = await afterSlow(t);
    const engine = ask("", "engine");

    const both = [ask("a", "report"), ask("a", "report")];
    await settle();

    assert.deepEqual(began, ["engine", "report", "report"]);
    for (const each of [...both, engine]) await each.finish();
  });

  test("has its share again after quick reads, and while a read of another verb is slow only that waits", async (t) => {
    const { began, ask, go } = await afterSlow(t);
    const other = ask("b", "other");
    for (let quick = 0; quick < limits.readsQuickAgain; quick++) await ask("a", "report").finish();
    began.length = 0;

    const both = [ask("a", "report"), ask("a", "report")];
    await settle();
    assert.deepEqual(began, ["report", "report"]);
    go(limits.readSlowMs);
    await both[0]?.finish();
    const next = [ask("a", "report"), ask("a", "list")];
    await settle();

    assert.deepEqual(began, ["report", "report", "list"]);
    for (const each of [...both, ...next, other]) await each.finish();
  });

  test("has its share of reads that may be inside one another", async (t) => {
    const { began, ask } = await afterSlow(t, { slowAlone: false });
    const other = ask("b", "other");

    const both = [ask("a", "report"), ask("a", "report")];
    await settle();

    assert.deepEqual(began, ["other", "report", "report"]);
    for (const each of [...both, other]) await each.finish();
  });
});
