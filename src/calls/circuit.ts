// A host that does not answer again and again is left alone for a while. Its calls wait outside the line, so that they hold
// no place that others could use; then one of them may try it, and if that is answered the others follow, a few with each
// answer. Each tenant has its own view of a host: nobody learns from this, or suffers by it, what another one does.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { OrderedJob } from "../jobs/hooks.ts";
import { release } from "../jobs/park.ts";
import { hostKey, hostOfKey } from "./call.ts";

const failuresMax = 5;
const pauseMs = 15_000;
const pauseMsMax = 300_000;
/** How many follow with each answer. */
const releasedEach = 10;
const sweptMax = 100;

function pauseAfter(failures: number): number {
  return Math.min(pauseMsMax, pauseMs * 2 ** Math.min(10, Math.max(0, failures - failuresMax)));
}

type Host = { readonly failures: number; readonly opened_at: number | null; readonly probe_at: number | null };
type Of = { readonly tenant: string; readonly host: string };

async function readHost(tx: Tx, { tenant, host }: Of): Promise<Host | undefined> {
  return tx.get<Host>(sql`select failures, opened_at, probe_at from call_host
    where tenant_id = ${tenant} and host = ${host}`);
}

/** What an attempt says about its host. Whoever ends a call holds the lock of its limit, so nobody decides beside us. */
export async function noteHost(tx: Tx, of: Of, isThere: boolean): Promise<void> {
  const { tenant, host } = of;
  const known = await readHost(tx, of);
  if (isThere) {
    if (known === undefined) return;
    const released = await release(tx, { tenant, waitsFor: "order", key: hostKey(host) }, releasedEach);
    await (released < releasedEach
      ? tx.run(sql`delete from call_host where tenant_id = ${tenant} and host = ${host}`)
      : tx.run(sql`update call_host set failures = 0, opened_at = null, probe_at = null
          where tenant_id = ${tenant} and host = ${host}`));
    return;
  }
  const failures = (known?.failures ?? 0) + 1;
  const opens = failures >= failuresMax && (known?.opened_at ?? null) === null;
  const openedAt = opens ? tx.now : (known?.opened_at ?? null);
  const probeAt = opens ? tx.now + pauseAfter(failures) : (known?.probe_at ?? null);
  await tx.run(sql`insert into call_host (tenant_id, host, failures, opened_at, probe_at)
    values (${tenant}, ${host}, ${failures}, ${openedAt}, ${probeAt})
    on conflict (tenant_id, host) do update set failures = excluded.failures, opened_at = excluded.opened_at,
      probe_at = excluded.probe_at`);
}

/** Whether a call must wait for its host. The first one after the pause may go, and the next pause begins with it. */
export async function mustWaitForHost(tx: Tx, job: OrderedJob): Promise<boolean> {
  const of = { tenant: job.tenant_id, host: hostOfKey(job.limit_key ?? "") };
  const known = await readHost(tx, of);
  if (known === undefined || known.probe_at === null) return false;
  if (known.probe_at > tx.now) return true;
  await tx.run(sql`update call_host set probe_at = ${tx.now + pauseAfter(known.failures + 1)}
    where tenant_id = ${of.tenant} and host = ${of.host}`);
  return false;
}

/** Lets one call go for each host whose pause is over, and some where the host is back. */
export async function sweepHosts(tx: Tx): Promise<number> {
  const due = await tx.all<{ tenant_id: string; host: string; probe_at: number | null }>(
    sql`select tenant_id, host, probe_at from call_host where probe_at <= ${tx.now}
      union all select tenant_id, host, probe_at from call_host where failures = 0
      order by tenant_id, host limit ${sweptMax}`,
  );
  let released = 0;
  for (const { tenant_id: tenant, host, probe_at: probeAt } of due) {
    const most = probeAt === null ? releasedEach : 1;
    released += await release(tx, { tenant, waitsFor: "order", key: hostKey(host) }, most);
  }
  return released;
}
