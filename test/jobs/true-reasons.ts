// J15: who waits for a limit waits because it is used up, or because one that may take the free slot stands in line.
import assert from "node:assert/strict";
import type { JobRow } from "../../src/jobs/job.ts";
import { limitKeysOf, limitsOf, nameOfKey } from "../../src/jobs/claim/limit.ts";
import type { TestEngine } from "./open-engine.ts";

export async function assertTrueReasons(at: Pick<TestEngine, "rows" | "clock">): Promise<void> {
  const jobs = await at.rows<JobRow>("select * from daybook_job_now where status in ('waiting', 'queued', 'running')");
  const permits = await at.rows<{ tenant_id: string; limit_key: string }>("select * from daybook_permit");
  for (const job of jobs.filter((each) => each.waits_for === "key")) {
    const { name, key } = limitsOf(job);
    const [tenant, limitKey] = cut(job.waits_key ?? "");
    assert.equal(tenant, job.tenant_id);
    const byName = nameOfKey(limitKey) !== undefined;
    const used = permits.filter((each) => each.tenant_id === tenant && each.limit_key === limitKey).length;
    const inLine = jobs.some(
      (each) => each.status === "queued" && each.tenant_id === tenant && limitKeysOf(each).includes(limitKey),
    );
    const most = (byName ? name : key) ?? 0;
    assert.ok(
      used >= most || inLine,
      `${job.id} waits for ${JSON.stringify(job.waits_key)}, of which ${used}/${most} are used`,
    );
  }
}

/** A key of the line: whose it is, and the limit's own. */
function cut(waitsKey: string): [string, string] {
  const end = waitsKey.indexOf("\n");
  return [waitsKey.slice(0, end), waitsKey.slice(end + 1)];
}
