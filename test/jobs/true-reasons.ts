// J15: who waits for a limit waits because it is used up, or because one that may take the free slot stands in line.
import assert from "node:assert/strict";
import { limitKeysOf, limitsOf, nameOfKey } from "../../src/jobs/limit.ts";
import type { JobRow } from "../../src/jobs/job.ts";
import type { TestEngine } from "./open-engine.ts";

export async function assertTrueReasons(at: Pick<TestEngine, "rows" | "clock">): Promise<void> {
  const jobs = await at.rows<JobRow>("select * from job where status in ('waiting', 'queued', 'running')");
  const hasKey = (job: JobRow, of: JobRow): boolean =>
    job.tenant_id === of.tenant_id && limitKeysOf(job).includes(of.waits_key ?? "");
  for (const job of jobs.filter((each) => each.waits_for === "key")) {
    const { name, key } = limitsOf(job);
    const byName = nameOfKey(job.waits_key ?? "") !== undefined;
    const live = jobs.filter((each) => each.status === "running" && hasKey(each, job));
    const used = live.filter((each) => (byName ? each.name_slot : each.key_slot) !== null).length;
    const inLine = jobs.some((each) => each.status === "queued" && hasKey(each, job));
    const most = (byName ? name : key) ?? 0;
    assert.ok(
      used >= most || inLine,
      `${job.id} waits for ${JSON.stringify(job.waits_key)}, of which ${used}/${most} are used`,
    );
  }
}
