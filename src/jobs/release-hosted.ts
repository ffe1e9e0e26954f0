// Jobs that wait for a host are queued again by a worker that runs their name and serves their queue.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, indexedBy } from "../storage/word.ts";
import type { Claimer } from "./claim.ts";
import { release } from "./park.ts";

type Host = Pick<Claimer, "hosts" | "queues" | "hostCursors">;

/** Queues about `most` jobs that wait for a host of one of our names, unless the name is paused in their tenant. Names
 *  and tenants take turns, each found by a seek, so neither a paused tenant nor one with many jobs stands before the
 *  others. What stands in a queue that is not ours stays: another would only park it again. True when there may be
 *  more. */
export async function releaseHosted(tx: Tx, { hosts, queues, hostCursors }: Host, most: number): Promise<boolean> {
  const share = Math.max(hostShare, Math.ceil(most / hosts.size));
  let more = false;
  for (const name of hosts) {
    const from = hostCursors.get(name) ?? "";
    let released = 0;
    let seen = 0;
    let tenant = await nextTenant(tx, name, from);
    while (tenant !== undefined && released < share && seen++ < limits.claimLanesMax) {
      hostCursors.set(name, tenant);
      if (!(await isPaused(tx, tenant, name))) {
        const lanes = queues === null ? undefined : await lanesOf(tx, tenant, queues);
        released += await release(tx, { tenant, waitsFor: "host", key: name }, hostShare, lanes);
      }
      tenant = await nextTenant(tx, name, tenant);
    }
    // After the last tenant the round is over. It may have begun in the middle, or left something for the next.
    if (tenant === undefined) hostCursors.delete(name);
    more ||= tenant !== undefined || from !== "" || released > 0;
  }
  return more;
}

/** So many jobs of one lane are released before the next tenant has its turn. */
const hostShare = 5;

async function nextTenant(tx: Tx, name: string, after: string): Promise<string | undefined> {
  const row = await tx.get<{ tenant_id: string }>(sql`select tenant_id from job ${indexedBy("jobs_waiting")}
    where status = 'waiting' and waits_for = 'host' and waits_key = ${name}
      and tenant_id > ${after}
    order by tenant_id limit 1`);
  return row?.tenant_id;
}

async function isPaused(tx: Tx, tenant: string, name: string): Promise<boolean> {
  return (await tx.get(sql`select 1 from paused_name where tenant_id = ${tenant} and name = ${name}`)) !== undefined;
}

async function lanesOf(tx: Tx, tenant: string, queues: ReadonlySet<string>): Promise<number[]> {
  const lanes = await tx.all<{ seq: number }>(
    sql`select seq from lane where tenant_id = ${tenant} and queue ${anyOf("text", [...queues])}`,
  );
  return lanes.map((row) => row.seq);
}
