// A listener for all tenants is one of each of them, with its own position, pause and dead letters. It is also kept once
// for those who are to come, as the listener of nobody: who says the first thing in a new tenant makes the tenant's own in
// the same transaction. So the first word is heard too, and nothing but this needs to know of it.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { laneOf } from "../jobs/lane.ts";
import type { ListenerRow } from "./listener.ts";

/** Who has not come yet. No tenant can have this name. */
export const nobody = "*";

/** The tenants that a listener for all is registered for: those in which something was said, or who have it already. One
 *  seek for each tenant, however many events there are. */
export async function tenantsFor(tx: Tx, name: string): Promise<string[]> {
  const rows = await tx.all<{ tenant: string }>(sql`with recursive said (tenant) as (
      select min(tenant_id) from daybook_event
      union all select (select min(event.tenant_id) from daybook_event event where event.tenant_id > said.tenant)
        from said where said.tenant is not null)
    select tenant from said where tenant is not null
    union select tenant_id from daybook_listener where name = ${name} and for_all = 1 order by 1`);
  return rows.map((row) => row.tenant);
}

/** Makes the tenant's own of these. Another may just have done so: theirs is taken then. All of them at once and in one
 *  order, because two who make some each could wait for each other. */
export async function join(tx: Tx, tenant: string, listeners: readonly ListenerRow[]): Promise<ListenerRow[]> {
  for (const { seq, queue } of listeners.toSorted((a, b) => a.seq - b.seq)) {
    await laneOf(tx, tenant, queue);
    await tx.run(sql`insert into daybook_listener (tenant_id, name, topics, queue, ordered, attempts, backoff, timeout_ms, losses,
        concurrency, starts_from, starts_at, starts_seq, state, heard_seq, for_all, registered_at, updated_at)
      select ${tenant}, name, topics, queue, ordered, attempts, backoff, timeout_ms, losses,
        concurrency, starts_from, starts_at, starts_seq, 'live', 0, 1, ${tx.now}, ${tx.now}
      from daybook_listener where seq = ${seq} on conflict do nothing`);
  }
  const names = listeners.map(({ name }) => name);
  return tx.all<ListenerRow>(
    sql`select * from daybook_listener where tenant_id = ${tenant} and name ${anyOf("text", names)}`,
  );
}
