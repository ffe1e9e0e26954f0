import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDaybookError, job, type EnqueueOptions, type OnConflict } from "../../src/index.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const hourMs = 3_600_000;
const work = job("work", { attempts: 2, backoff: ["10m"], run: (_params: Record<string, unknown>) => undefined });
const other = job("other", { run: (_params: Record<string, unknown>) => undefined });

type Result = "created" | "kept" | "replaced" | "refused";
const free = { keep: "created", replace: "created", error: "created" } as const;
const held = { keep: "kept", replace: "replaced", error: "refused" } as const;
const begun = { keep: "kept", replace: "refused", error: "refused" } as const;

// What the second enqueue with the same key becomes, by how long the first holds it and what has become of the first.
const table: Record<string, Record<string, Record<OnConflict, Result>>> = {
  queued: { waiting: held, queued: held, running: free, retry: free, completed: free, cancelled: free },
  done: { waiting: held, queued: held, running: begun, retry: begun, completed: free, cancelled: free },
  window: { waiting: held, queued: held, running: begun, retry: begun, completed: begun, cancelled: begun },
  "window that is over": { waiting: free, queued: free, running: free, retry: free, completed: free, cancelled: free },
};

for (const backend of backends) {
  describe(backend, () => {
    test("a taken key is kept, replaced or refused, by its scope and the state of its job, in each tenant apart", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const found: typeof table = {};

      let cell = 0;
      for (const [scope, states] of Object.entries(table)) {
        for (const state of Object.keys(states)) {
          for (const onConflict of ["keep", "replace", "error"] as const) {
            ((found[scope] ??= {})[state] ??= {} as Record<OnConflict, Result>)[onConflict] = await tryKey(at, {
              cell: cell++,
              scope,
              state,
              onConflict,
            });
          }
        }
      }

      assert.deepEqual(found, table);
      await assertInvariants(at);
    });

    test("a replaced job keeps its place in line and takes the new params, priority, time, tags and limits", async (t) => {
      const { book } = await openTest(t, backend, { use: [limited] });
      const first = await book.jobs.enqueue(limited, { account: "a" }, { key: "k", tags: ["old"] });
      await book.jobs.enqueue(limited, { account: "z" });

      const again = await book.jobs.enqueue(
        limited,
        { account: "b" },
        {
          key: "k",
          onConflict: "replace",
          priority: 5,
          tags: ["new"],
          in: "1h",
        },
      );

      assert.deepEqual(again, { id: first.id, name: "limited", status: "waiting", created: false });
      const found = await book.jobs.get(first.id);
      assert.deepEqual([found.params, found.priority, found.tags], [{ account: "b" }, 5, ["new"]]);
      assert.equal(found.waitsFor, "time");
      const [row] = await book.read(
        (tx) => tx.sql`select position, seq, limit_key from daybook_job_now where id = ${first.id}`,
      );
      assert.deepEqual(row, { position: Number(row?.["seq"]) * 100, seq: row?.["seq"], limit_key: "limited\nb" });
    });

    test("one name's key is not another's, and a job without a key holds none", async (t) => {
      const { book } = await openTest(t, backend, { use: [work, other] });
      const options = { key: "k", onConflict: "error" } as const;

      const made = [
        await book.jobs.enqueue(work, {}, options),
        await book.jobs.enqueue(other, {}, options),
        await book.jobs.enqueue(work, {}),
        await book.jobs.enqueue(work, {}),
        await book.jobs.enqueue(work, {}, { ...options, key: "K" }),
      ];

      assert.ok(made.every(({ created }) => created));
    });

    test("of many enqueues of one key at the same time one makes a job and the others find it", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });

      const all = await Promise.all([
        ...Array.from({ length: 30 }, () => book.jobs.enqueue(work, {}, { key: "k" })),
        ...Array.from({ length: 5 }, () => book.write((tx) => tx.jobs.enqueue(work, {}, { key: "k" }))),
        book.jobs.enqueueMany(work, [{}, {}, {}], { key: "k" }),
      ]);

      const made = all.flat();
      assert.equal(made.filter(({ created }) => created).length, 1);
      assert.equal(new Set(made.map(({ id }) => id)).size, 1);
      assert.equal((await book.jobs.list()).items.length, 1);
    });

    test("a key that changes hands while workers run is always with one open job", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      await book.startWorker();
      let created = 0;

      for (let round = 0; round < 40; round++) {
        const made = await Promise.all(
          (["keep", "keep", "replace", "error"] as const).map((onConflict) =>
            book.jobs.enqueue(work, { round }, { key: "k", onConflict }).catch((error: unknown) => {
              assert.ok(isDaybookError(error) && error.code === "conflict", String(error));
              return { created: false };
            }),
          ),
        );
        created += made.filter((each) => each.created).length;
      }

      const { items } = await book.jobs.list({ limit: 500 });
      assert.equal(items.length, created);
      assert.deepEqual(await book.doctor(), []);
    });
  });
}

const limited = job("limited", {
  limit: { key: ({ account }) => account, concurrency: 1 },
  run: (_params: { account: string }) => undefined,
});

type Cell = { cell: number; scope: string; state: string; onConflict: OnConflict };

async function tryKey(at: TestEngine, { cell, scope, state, onConflict }: Cell): Promise<Result> {
  const keyScope: EnqueueOptions["keyScope"] =
    scope === "queued" || scope === "done" ? scope : { window: scope === "window" ? "10h" : "30m" };
  const options = { key: `k${cell}`, keyScope, queue: `q${cell}` } as const;
  const foreign = at.tenant("foreign").jobs;
  const first = await at.jobs.enqueue(
    work,
    { is: "old" },
    { ...options, ...(state === "waiting" ? { in: "1000h" } : {}) },
  );
  const holder = await reach(at, first.id, state, options.queue);
  // A window that is longer than this one outlives the hour.
  if (scope === "window that is over") await at.clock.advance(hourMs);

  // The other tenant's key is its own, whatever is tried here.
  assert.equal((await foreign.enqueue(work, {}, { ...options, onConflict: "error" })).created, true);
  try {
    const second = await at.jobs.enqueue(work, { is: "new" }, { ...options, onConflict });
    const repeated = await at.jobs.enqueue(work, { is: "newer" }, { ...options, onConflict: "keep" });
    assert.deepEqual([repeated.id, repeated.created], [second.id, false]);
    if (second.created) return "created";
    const { params } = await at.jobs.get(second.id);
    const replaced = (params as { is: string }).is === "new";
    if (replaced) assert.equal(second.id, holder);
    return replaced ? "replaced" : "kept";
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "conflict") throw error;
    assert.match(error.message, new RegExp(`key "k${cell}" of work is taken by job ${holder}, which is `));
    assert.equal(((await at.jobs.get(holder)).params as { is: string }).is, "old");
    return "refused";
  }
}

/** Brings the job into the state; returns the id of the job that then has its key, if any has. */
async function reach(at: TestEngine, id: string, state: string, queue: string): Promise<string> {
  if (state === "waiting" || state === "queued") return id;
  if (state === "cancelled") {
    await at.jobs.cancel(id);
    return id;
  }
  const claimed = await at.claimFrom(queue);
  assert.equal(claimed?.id, id);
  if (claimed === undefined || state === "running") return id;
  await at.end(claimed, { status: state === "completed" ? "success" : "error" });
  const { status, retriedBy } = await at.jobs.get(id);
  assert.equal(status, state === "completed" ? "completed" : "failed");
  const held = await at.rows(`select job_seq from daybook_job_key where job_seq = ${claimed.seq}`);
  return held.length === 0 && retriedBy !== null ? retriedBy : id;
}
