// A host that fails to answer several times in a row is paused. Its calls are parked, so they hold no place that others could
// use. One of them is due when the pause ends and tries the host; if it is answered, the others follow, a few with each answer.
// Each tenant has its own view of a host, so no tenant learns about or suffers from another's calls.
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { indexedBy, skipLocked } from "../storage/word.ts";
import type { MustWait, OrderedJob } from "../jobs/kind.ts";
import { jobsChannel } from "../jobs/job.ts";
import { lanesThatWait, release, waitsKey } from "../jobs/wait/park.ts";
import { queue, restand } from "../jobs/state.ts";
import { callKind, hostKey, hostOfKey } from "./call.ts";

const failuresMax = 5;
const pauseMs = 15_000;
export const pauseMsMax = 300_000;
/** How many calls follow with each answer. */
const releasedEach = 10;
const sweptMax = 100;

function pauseAfter(failures: number): number {
  return Math.min(pauseMsMax, pauseMs * 2 ** Math.min(10, Math.max(0, failures - failuresMax)));
}

type Of = { readonly tenant: string; readonly host: string };
type Host = {
  readonly failures: number;
  readonly opened_at: number | null;
  readonly probe_at: number | null;
  /** The call that tries the host then. If it is cancelled, the sweep finds another. */
  readonly probe_call_seq: number | null;
};

async function readHost(tx: Tx, { tenant, host }: Of): Promise<Host | undefined> {
  return tx.get<Host>(sql`select failures, opened_at, probe_at, probe_call_seq from daybook_call_host
    where tenant_id = ${tenant} and host = ${host}`);
}

/** What the attempts of one transaction say about a host: whether it answered, and how many attempts failed since. */
export type HostNote = Of & { readonly answered: boolean; readonly failures: number };

/** Notes that. A transaction that ends a call holds the lock of its limit, so no other decides about the host meanwhile. */
export async function noteHost(tx: Tx, { answered, failures: failed, ...of }: HostNote): Promise<void> {
  const known = await readHost(tx, of);
  if (answered && known !== undefined) await letFollow(tx, of, known);
  if (failed === 0) return;
  const before = answered ? undefined : known;
  const failures = (before?.failures ?? 0) + failed;
  const opens = failures >= failuresMax && (before?.opened_at ?? null) === null;
  const openedAt = opens ? tx.now : (before?.opened_at ?? null);
  const probeAt = opens ? tx.now + pauseAfter(failures) : (before?.probe_at ?? null);
  const asked = opens ? null : (before?.probe_call_seq ?? null);
  const probes = probeAt === null ? null : (asked ?? (await appoint(tx, of, probeAt)));
  await tx.run(sql`insert into daybook_call_host (tenant_id, host, failures, opened_at, probe_at, probe_call_seq)
    values (${of.tenant}, ${of.host}, ${failures}, ${openedAt}, ${probeAt}, ${probes})
    on conflict (tenant_id, host) do update set failures = excluded.failures, opened_at = excluded.opened_at,
      probe_at = excluded.probe_at, probe_call_seq = excluded.probe_call_seq`);
}

// The host is up: the call that was to try it goes at once, and some of the others with it.
async function letFollow(tx: Tx, of: Of, { probe_at: probeAt, probe_call_seq: probes }: Host): Promise<void> {
  const { tenant, host } = of;
  if (probes !== null) {
    const probe = sql`select seq from daybook_line where kind = ${callKind} and kind_seq = ${probes} and kind is not null
      and waits_key is null and available_at = ${probeAt}`;
    await queue(tx, probe, "time");
    tx.wake(jobsChannel);
  }
  await release(tx, { tenant, waitsFor: "order", key: hostKey(host) }, releasedEach);
  // `release` passes over a call that another transaction has locked; the row must stay, because it leads the sweep to that call.
  await (!(await anyWaits(tx, of))
    ? tx.run(sql`delete from daybook_call_host where tenant_id = ${tenant} and host = ${host}`)
    : tx.run(sql`update daybook_call_host set failures = 0, opened_at = null, probe_at = null, probe_call_seq = null
        where tenant_id = ${tenant} and host = ${host}`));
}

async function anyWaits(tx: Tx, { tenant, host }: Of): Promise<boolean> {
  return (await lanesThatWait(tx, { tenant, waitsFor: "order", key: hostKey(host) })).length > 0;
}

/** Makes the first call that waits for the host due when the pause ends; null when none waits. */
async function appoint(tx: Tx, { tenant, host }: Of, probeAt: number): Promise<number | null> {
  const waits = waitsKey({ tenant, waitsFor: "order", key: hostKey(host) });
  const first = await tx.get<{ seq: number; kind_seq: number }>(sql`select seq, kind_seq
    from daybook_line ${indexedBy("jobs_waiting")}
    where status = 'waiting' and waits_for = 'order' and waits_key = ${waits} and waits_key is not null
    order by lane_seq, priority desc, position, seq limit 1 ${skipLocked}`);
  if (first === undefined) return null;
  await restand(tx, first.seq, { waitsFor: "time", availableAt: probeAt });
  tx.wake(jobsChannel);
  return first.kind_seq;
}

// The hosts that a claim has found to be up. The claim holds their limits and has ended what it ends, so they stay so.
function hostsUp(tx: Tx): Set<string> {
  const claims = tx.keep("hosts that are up", () => new WeakMap<Tx, Set<string>>());
  const found = claims.get(tx) ?? new Set();
  claims.set(tx, found);
  return found;
}

/** Whether a call must wait for its host. After a pause the first call may go, and the next pause begins with it. */
export function mustWaitForHost(tx: Tx, job: OrderedJob): Awaitable<MustWait> {
  return hostsUp(tx).has(`${job.tenant_id}\n${job.limit_key}`) ? false : askHost(tx, job);
}

async function askHost(tx: Tx, job: OrderedJob): Promise<MustWait> {
  const of = { tenant: job.tenant_id, host: hostOfKey(job.limit_key ?? "") };
  const known = await readHost(tx, of);
  if (known === undefined || known.probe_at === null) {
    hostsUp(tx).add(`${job.tenant_id}\n${job.limit_key}`);
    return false;
  }
  if (known.probe_at <= tx.now) {
    await tx.run(sql`update daybook_call_host set probe_at = ${tx.now + pauseAfter(known.failures + 1)}, probe_call_seq = null
      where tenant_id = ${of.tenant} and host = ${of.host}`);
    return false;
  }
  if (known.probe_call_seq !== null && known.probe_call_seq !== job.kind_seq) return true;
  await tx.run(sql`update daybook_call_host set probe_call_seq = ${job.kind_seq}
    where tenant_id = ${of.tenant} and host = ${of.host}`);
  return { until: known.probe_at };
}

/** Releases one call for each host whose pause is over, and some where the host is up again: the calls that followed its last
 *  answer may all have been cancelled. */
export async function sweepHosts(tx: Tx): Promise<number> {
  const due = await tx.all<{ tenant_id: string; host: string; probe_at: number | null }>(
    sql`select tenant_id, host, probe_at from daybook_call_host call_host where probe_at <= ${tx.now}
      union all select tenant_id, host, probe_at from daybook_call_host call_host where failures = 0
      union all select tenant_id, host, probe_at from daybook_call_host call_host where failures > 0 and probe_at is null
        and exists (select 1 from daybook_line line ${indexedBy("jobs_waiting")} where line.status = 'waiting'
          and line.waits_for = 'order' and line.waits_key is not null
          and line.waits_key = call_host.tenant_id || ${`\n${hostKey("")}`} || call_host.host)
      order by tenant_id, host limit ${sweptMax}`,
  );
  let released = 0;
  for (const { tenant_id: tenant, host, probe_at: probeAt } of due) {
    const most = probeAt === null ? releasedEach : 1;
    const count = await release(tx, { tenant, waitsFor: "order", key: hostKey(host) }, most);
    if (count === 0 && !(await anyWaits(tx, { tenant, host }))) await forget(tx, { tenant, host });
    released += count;
  }
  return released;
}

// No call waits for it: an old row would only slow the sweep.
async function forget(tx: Tx, { tenant, host }: Of): Promise<void> {
  await tx.run(sql`delete from daybook_call_host where tenant_id = ${tenant} and host = ${host}
    and (failures = 0 or probe_at <= ${tx.now - pauseMsMax})`);
}

/** Ends pauses that began while the clock ran ahead. The call that was to try the host goes at once. */
export async function endLongPauses(tx: Tx): Promise<number> {
  const isLong = sql`probe_at > ${tx.now + limits.clockAheadMs + pauseMsMax}`;
  const probes = await tx.all<{ seq: number }>(sql`select line.seq from daybook_call_host call_host
    join daybook_line line on line.kind = ${callKind} and line.kind_seq = call_host.probe_call_seq
      and line.kind is not null and line.available_at = call_host.probe_at
    where call_host.${isLong} and line.status = 'waiting' and line.waits_for = 'time'`);
  for (const { seq } of probes) await restand(tx, seq, { waitsFor: "time", availableAt: tx.now });
  tx.wake(jobsChannel);
  return tx.run(sql`update daybook_call_host set probe_at = ${tx.now}, opened_at = ${tx.now} where ${isLong}`);
}
