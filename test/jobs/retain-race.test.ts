// On PostgreSQL others change jobs and groups while a prune is under way. What they hold, it leaves alone, without waiting.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "pg";
import { isDaybookError, job } from "../../src/index.ts";
import { cleanup } from "../support/open-test.ts";
import { leave } from "./leave.ts";
import { assertInvariants } from "./model.ts";
import { openEngine } from "./open-engine.ts";

const plain = job("plain", { attempts: 1, run: () => undefined });

for (const held of ["job", "job_group"] as const) {
  test(`a ${held} that another transaction refers to is left for the next prune`, async (t) => {
    const at = await openEngine(t, "postgres", { use: [plain] });
    const made = await at.jobs.enqueueMany(plain, [{}, {}, {}]);
    for (const claimed of await at.claim(3)) await at.end(claimed, { status: "error" });
    const [first, second, third] = made.map(({ id }) => id);
    await at.run(`insert into daybook_job_group (tenant_id, id, mode, on_failure, status, slots, created_at, finished_at)
      values ('default', 'g', 'parallel', 'continue', 'failed', 2, 1, 1)`);
    await at.run(`update daybook_job set group_slot = 0, group_seq = 1 where id in ('${first}', '${second}')`);
    const other = new Client({ connectionString: at.url });
    await other.connect();
    cleanup(t, () => other.end());
    // The lock that a new retry has on the job before it, and a new job on its group.
    await other.query("begin");
    const name = held === "job" ? first : "g";
    await other.query(`select seq from daybook.daybook_${held} where id = '${name}' for key share`);

    const { jobs, groups } = await leave(at, { olderThan: 0 });
    await other.query("rollback");
    const later = await leave(at, { olderThan: 0 });

    assert.deepEqual([jobs, groups, later.jobs, later.groups], [1, 0, 2, 1]);
    await assert.rejects(at.jobs.get(third ?? ""), { code: "not_found" });
    await assertInvariants(at);
  });
}

test("of a retry by hand and a prune of the same job at once, one comes too late", async (t) => {
  const at = await openEngine(t, "postgres", { use: [plain] });
  const { id } = await at.jobs.enqueue(plain, {});
  for (const claimed of await at.claim(1)) await at.end(claimed, { status: "error" });

  const [pruned, retried] = await Promise.allSettled([leave(at, { olderThan: 0 }), at.jobs.retry(id)]);

  const left = (await at.jobs.list()).items.length;
  assert.equal(pruned.status, "fulfilled");
  if (retried.status === "fulfilled") assert.equal(left, 2);
  else assert.deepEqual([isDaybookError(retried.reason) && retried.reason.code, left], ["not_found", 0]);
  await assertInvariants(at);
});
