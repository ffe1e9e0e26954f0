import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { limits } from "../../src/core/limits.ts";
import { createReadTurns, type ReadTurns, type Starting } from "../../src/storage/read-turns.ts";
import { createReader } from "../../src/storage/sqlite/reader.ts";
import { bookUrl, cleanup } from "../support/open-test.ts";

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

test("the time in which a reader starts is not the read's: its deadline is counted from there", async (t) => {
  const timers: { ms: number; ring(): void; cancelled: boolean }[] = [];
  t.mock.method(systemClock, "after", (ms: number, ring: () => void) => {
    const timer = { ms, ring, cancelled: false };
    timers.push(timer);
    return { cancel: () => void (timer.cancelled = true) };
  });
  const counting = (): unknown[] => timers.filter(({ cancelled }) => !cancelled).map(({ ms }) => ms);
  const turns = createReadTurns({ atOnce: 2, perTenant: 2 });
  const { promise: ready, resolve: start } = Promise.withResolvers<void>();
  const never = new Promise<never>(() => undefined);
  const read = (verb: string, reader: Starting): Promise<unknown> =>
    turns.run({ tenant: "a", verb, msMax: 500 }, async (_signal, has) => (has(reader), never));

  const starting = assert.rejects(read("starting", { started: false, ready }), { code: "timeout" });
  await settle();
  assert.deepEqual(counting(), [limits.readerStartMs]);
  start();
  await settle();
  assert.deepEqual(counting(), [500]);
  timers.at(-1)?.ring();
  await starting;

  const stuck = assert.rejects(read("stuck", { started: false, ready: never }), { code: "busy" });
  await settle();
  timers.at(-1)?.ring();
  await stuck;
});

test("a reader says that it has started before it has answered anything", async (t) => {
  const reader = createReader({ location: await bookUrl(t, "sqlite"), writable: false }, "process");
  cleanup(t, () => reader.kill());
  const endless = "with recursive n (i) as (select 1 union all select i + 1 from n) select max(i) from n";
  const asked = assert.rejects(reader.all({ text: endless, params: [] }), { code: "unavailable" });

  await reader.ready;

  assert.equal(reader.started, true);
  await reader.kill();
  await asked;
});
