import assert from "node:assert/strict";
import { test } from "node:test";
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
