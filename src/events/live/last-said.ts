// The last event of each topic that is in the book, for a listener that is to act at once. Topics have no index, since
// publishing would pay for it; so it looks through the latest events only, away from the event loop.
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import type { EventRow } from "../event.ts";
import { matchesTopic } from "../topic.ts";
import type { LiveDefinition } from "./define.ts";
import { toLiveEvent } from "./heard-row.ts";
import type { LiveEvent } from "./live-event.ts";

type Head = Pick<EventRow, "seq" | "tenant_id" | "topic">;

export async function lastSaid(
  store: Store,
  { topics, allTenants }: LiveDefinition,
  tenant: string,
): Promise<LiveEvent[]> {
  const now = store.clock.now();
  const heads = await store.readHeavy<Head>(
    allTenants
      ? sql`select seq, tenant_id, topic from daybook_event where available_at <= ${now} and replay_of is null
          order by seq desc limit ${limits.liveLookBackMax}`
      : sql`select seq, tenant_id, topic from daybook_event where tenant_id = ${tenant} and available_at <= ${now} and replay_of is null
          order by seq desc limit ${limits.liveLookBackMax}`,
  );
  const last = new Map<string, number>();
  for (const { seq, tenant_id, topic } of heads) {
    const key = `${tenant_id} ${topic}`;
    if (!last.has(key) && topics.some((pattern) => matchesTopic(pattern, topic))) last.set(key, seq);
  }
  if (last.size === 0) return [];
  const rows = await store.readHeavy<EventRow>(
    sql`select * from daybook_event where seq ${anyOf("integer", [...last.values()])} order by seq`,
  );
  return rows.map(toLiveEvent);
}
