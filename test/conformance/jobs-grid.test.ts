import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDaybookError, job } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { freeKeys } from "../../src/jobs/key.ts";
import { skipInLine } from "../../src/jobs/state.ts";
import { sql } from "../../src/storage/sql.ts";
import { assertInvariants } from "../jobs/model.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

// Every state × every command: what becomes of it. "refused" leaves the job exactly as it was.
const commands = ["cancel", "retry", "same key", "explain", "settle", "settle by another", "pause", "resume"] as const;
const table: Record<string, readonly string[]> = {
  // state                    cancel        retry       same key   explain      settle      by another  pause        resume
  "waiting for time": /*   */ ["cancelled", "refused", "kept", "time", "refused", "refused", "time", "time"],
  "waiting for a key": /*  */ ["cancelled", "refused", "kept", "key", "refused", "refused", "key", "key"],
  "waiting for a host": /* */ ["cancelled", "refused", "kept", "host", "refused", "refused", "host", "queued"],
  queued: /*               */ ["cancelled", "refused", "kept", "host", "refused", "refused", "host", "queued"],
  running: /*              */ [
    "cancelling",
    "refused",
    "kept",
    "running",
    "completed",
    "refused",
    "running",
    "running",
  ],
  completed: /*            */ [
    "refused",
    "refused",
    "created",
    "completed",
    "refused",
    "refused",
    "completed",
    "completed",
  ],
  "failed and retried": /* */ ["refused", "refused", "kept", "failed", "refused", "refused", "failed", "failed"],
  "failed for good": /*    */ ["refused", "queued", "created", "failed", "refused", "refused", "failed", "failed"],
  cancelled: /*            */ [
    "refused",
    "queued",
    "created",
    "cancelled",
    "refused",
    "refused",
    "cancelled",
    "cancelled",
  ],
  skipped: /*              */ ["refused", "refused", "created", "skipped", "refused", "refused", "skipped", "skipped"],
};
const cells = Object.keys(table).flatMap((state) => commands.map((command) => ({ state, command })));
// A definition for each cell, so that no limit and no pause reaches into another.
const use = cells.map(({ state }, index) =>
  job(`cell-${index}`, {
    concurrency: 1,
    backoff: ["1h"],
    attempts: state === "failed and retried" ? 2 : 1,
    run: () => undefined,
  }),
);

for (const backend of backends) {
  describe(backend, () => {
    test("every command in every state is allowed or refused as the table says, twice alike when it is refused", async (t) => {
      const at = await openEngine(t, backend, { use });

      const found: Record<string, string[]> = {};
      for (const [index, { state, command }] of cells.entries()) {
        const id = await reach(at, index, state);
        (found[state] ??= []).push(await give(at, index, id, command));
      }

      assert.deepEqual(found, table);
      await assertInvariants(at);
    });
  });
}

async function give(at: TestEngine, index: number, id: string, command: (typeof commands)[number]): Promise<string> {
  const before = await row(at, id);
  const outcome = await attempt(at, index, id, command);
  if (outcome !== "refused") return outcome;
  assert.deepEqual(await row(at, id), before, `${id} was changed by a refused ${command}`);
  assert.equal(await attempt(at, index, id, command), "refused");
  return outcome;
}

async function attempt(at: TestEngine, index: number, id: string, command: (typeof commands)[number]): Promise<string> {
  const name = `cell-${index}`;
  const state = async (): Promise<string> => {
    const { status, waitsFor } = await at.jobs.get(id);
    return waitsFor ?? status;
  };
  try {
    switch (command) {
      case "cancel":
        return (await at.jobs.cancel(id)).status;
      case "retry":
        return (await at.jobs.retry(id)).status;
      case "same key":
        return (await at.jobs.enqueue(name, {}, { key: name, queue: name })).created ? "created" : "kept";
      case "explain":
        return (await at.jobs.explain(id)).reason;
      case "settle":
      case "settle by another": {
        const { seq, run_id: runId } = await row(at, id);
        const claimed = { seq, run_id: command === "settle" ? (runId ?? "none") : "another" };
        const { late } = await at.end(claimed, { status: "success" });
        return late.size > 0 ? "refused" : await state();
      }
      case "pause":
        await at.jobs.pause(name);
        await at.claimFrom(name);
        return await state();
      case "resume":
        await at.jobs.resume(name);
        return await state();
    }
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "conflict") throw error;
    return "refused";
  }
}

async function reach(at: TestEngine, index: number, state: string): Promise<string> {
  const name = `cell-${index}`;
  const options = { key: name, queue: name };
  if (state === "waiting for a key") {
    await at.jobs.enqueue(name, {}, { queue: name });
    await at.claimFrom(name);
  }
  const { id } = await at.jobs.enqueue(name, {}, { ...options, ...(state === "waiting for time" ? { in: "1h" } : {}) });
  switch (state) {
    case "waiting for a key":
      await at.claimFrom(name);
      break;
    case "waiting for a host":
      await at.claim(1, { ...at.claimer(), hosts: new Set(), queues: new Set([name]) });
      break;
    case "running":
      await at.claimFrom(name);
      break;
    case "completed":
      await at.end((await at.claimFrom(name)) as ClaimedJob, { status: "success" });
      break;
    case "failed and retried":
    case "failed for good":
      await at.end((await at.claimFrom(name)) as ClaimedJob, { status: "error" });
      break;
    case "cancelled":
      await at.jobs.cancel(id);
      break;
    case "skipped":
      await at.store.write(async (tx) =>
        freeKeys(tx, await skipInLine(tx, sql`select seq from daybook_job where id = ${id}`)),
      );
      break;
    default:
  }
  const status = state.split(" ")[0];
  const found = await at.jobs.get(id);
  assert.equal(found.status, status, state);
  return id;
}

async function row(at: TestEngine, id: string): Promise<{ seq: number; run_id: string | null }> {
  const [found] = await at.rows<{ seq: number; run_id: string | null }>(
    `select * from daybook_job_now where id = '${id}'`,
  );
  return found ?? { seq: 0, run_id: null };
}
