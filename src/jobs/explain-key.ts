// Why a job waits for a limit: who holds it, or why nobody takes the place that is free.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { hostOrObstacle } from "./explain-host.ts";
import type { JobRow } from "./job.ts";
import { limitsOf, nameOfKey } from "./limit.ts";

export async function explainKey(store: Store, job: JobRow): Promise<string[]> {
  const key = (job.waits_key ?? "").slice(job.tenant_id.length + 1);
  const byName = nameOfKey(key) !== undefined;
  const holders = await store.read<{ id: string }>(
    sql`select job.id from daybook_permit permit join daybook_job job on job.seq = permit.job_seq
      where permit.tenant_id = ${job.tenant_id} and permit.limit_key = ${key} order by permit.number`,
  );
  const rules = limitsOf(job);
  const most = byName ? rules.name : rules.key;
  const of = byName ? `of ${job.name}` : `with limit key ${JSON.stringify(key.slice(key.indexOf("\n") + 1))}`;
  const first = holders.slice(0, 5).map((row) => row.id);
  const limit = `At most ${most ?? "?"} ${of} may run at the same time`;
  const who = first.length === 0 ? "" : `: ${first.join(", ")}`;
  if (holders.length >= (most ?? 0)) return ["key", `${limit}, and ${holders.length} do${who}.`];
  // There is room. Whoever made it let the first of each lane in, and they take it when their lane lets them.
  const free = `${limit}; ${holders.length} do${who}, and those that were let in before it have the first choice.`;
  const host = await hostOrObstacle(store, job);
  return "obstacle" in host ? [...host.obstacle, free] : ["key", free];
}
