// How far behind the listeners of a tenant are, at a glance: of each of their queues only the first deliveries are looked at, so that it
// costs the same beside a million of them. `listeners.ts` counts all.
import { toCounted, type Counted } from "../core/count.ts";
import { limits } from "../core/limits.ts";
import { sql, rawSql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { amongThe, byNumber, indexedBy, seekEach } from "../storage/word.ts";
import { deliveryName } from "./listener.ts";

/** One listener that has something before it. */
export type Behind = {
  readonly name: string;
  /** Deliveries that wait or run, and past events that it has not reached yet. */
  readonly events: number;
  /** There may be more than were counted. */
  readonly more: boolean;
  /** How long ago the oldest of them was published. */
  readonly seconds: number;
  readonly paused: boolean;
};

type Found = { readonly name: string; readonly events: number; readonly oldest: number; readonly most: number };

type Listening = {
  readonly name: string;
  readonly state: string;
  readonly heardSeq: number;
  readonly startsAt: number | null;
  readonly paused: number;
};

/** Those that are behind, the one that has waited longest first. */
export async function readBehind(store: Store, tenant: string): Promise<Behind[]> {
  const [listening, open] = await Promise.all([
    store.readHeavy<Listening>(sql`select listener.name, listener.state, listener.heard_seq as "heardSeq",
        listener.starts_at as "startsAt", case when paused.name is null then 0 else 1 end as paused
      from daybook_listener listener left join daybook_paused_name paused
        on paused.tenant_id = listener.tenant_id and paused.name = 'listener:' || listener.name
      where listener.tenant_id = ${tenant} and listener.state <> 'removed' order by listener.name`),
    readOpen(store, tenant),
  ]);
  const waiting = new Map(open.map((each) => [each.name, each]));
  const now = store.clock.now();
  const behind: Behind[] = [];
  for (const each of listening) {
    const ahead = each.state === "catching_up" ? await readAhead(store, tenant, each) : [];
    const parts = [...ahead, waiting.get(deliveryName(each.name)) ?? []].flat();
    const events = parts.reduce((sum, part) => sum + part.events, 0);
    if (events === 0) continue;
    const oldest = Math.min(now, ...parts.map((part) => part.oldest));
    const more = parts.some(({ most }) => most > limits.deliveriesLookedAtMax);
    behind.push({ name: each.name, events, more, seconds: (now - oldest) / 1000, paused: each.paused === 1 });
  }
  return behind.toSorted((one, other) => other.seconds - one.seconds);
}

/** Of each lane the first that stand so. */
function firstOf(status: string, index: string, order: string): Sql {
  const first = sql`select ahead.seq from daybook_line ahead ${indexedBy(index)}
    where ahead.status = '${rawSql(status)}' and ahead.lane_seq = lanes.seq
    order by ${rawSql(order)} limit ${limits.deliveriesLookedAtMax + 1}`;
  const found = sql`line.seq ${amongThe(first)} and line.kind = 'delivery'`;
  return sql`select line.seq, line.kind_seq, line.lane_seq, line.status from lanes ${seekEach("line", found, byNumber)}`;
}

const inLine = "ahead.priority desc, ahead.position";

/** Open deliveries by the name of their jobs; `most` is how many were looked at in one place. */
async function readOpen(store: Store, tenant: string): Promise<Found[]> {
  return store.readHeavy<Found>(sql`with lanes as materialized (select lane.seq from daybook_lane lane
      where lane.tenant_id = ${tenant} and lane.queue in (select listener.queue from daybook_listener listener
        where listener.tenant_id = ${tenant} and listener.state <> 'removed')),
    open as materialized (${firstOf("queued", "jobs_to_claim", inLine)} union all ${firstOf("waiting", "jobs_standing_by", inLine)}
      union all ${firstOf("running", "jobs_running", "ahead.session_seq")})
    select job.name, count(*) as events, min(event.published_at) as oldest,
      (select max(looked) from (select count(*) as looked from open group by lane_seq, status) as places) as most
    from open ${seekEach("job", sql`job.seq = open.seq`)} ${seekEach("event", sql`event.seq = open.kind_seq`)}
    group by job.name`);
}

/** Past events that it has not reached: an upper bound, because it compares their topics only then. */
async function readAhead(store: Store, tenant: string, { heardSeq, startsAt }: Listening): Promise<Found[]> {
  const [found] = await store.readHeavy<Omit<Found, "name" | "oldest"> & { oldest: number | null }>(sql`select
      cast(coalesce(sum(case when published_at >= ${startsAt ?? 0} then 1 else 0 end), 0) as bigint) as events,
      min(case when published_at >= ${startsAt ?? 0} then published_at end) as oldest, count(*) as most
    from (select published_at from daybook_event where tenant_id = ${tenant} and seq > ${heardSeq}
      order by seq limit ${limits.deliveriesLookedAtMax + 1}) as ahead`);
  return found === undefined || found.oldest === null ? [] : [{ name: "", ...found, oldest: found.oldest }];
}

/** How many dead letters wait for a person. */
export async function countLetters(store: Store, tenant: string): Promise<Counted> {
  const [found] = await store.readHeavy<{ n: number }>(sql`select count(*) as n from (select 1
    from daybook_dead_letter where tenant_id = ${tenant} and ended_at is null limit ${limits.countedMax + 1}) as letters`);
  return toCounted(found?.n ?? 0);
}
