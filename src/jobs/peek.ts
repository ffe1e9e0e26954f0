// A look without a turn. On SQLite every commit of another process wakes every worker, its heartbeats too; if each of them
// took a turn, its commit would wake the others, and idle processes would keep each other busy.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { indexedBy } from "../storage/word.ts";
import { earlier, type Alarm } from "./alarm.ts";

type Found = { queued: number | null; hosted: number | null; due_at: number | null; opens_at: number | null };

/** False when there is nothing that a turn could claim, release, or learn. */
export async function peek(store: Pick<Store, "read">, alarm: Pick<Alarm, "knows">): Promise<boolean> {
  const [found] = await store.read<Found>(sql`select
    (select 1 from job ${indexedBy("jobs_to_claim")} where status = 'queued' limit 1) as queued,
    (select 1 from job ${indexedBy("jobs_waiting")}
      where status = 'waiting' and waits_key is not null and waits_for = 'host' limit 1) as hosted,
    (select min(available_at) from job where status = 'waiting' and waits_for = 'time' and waits_key is null) as due_at,
    (select min(opens_at) from rate_window where opens_at is not null) as opens_at`);
  if (found === undefined || found.queued !== null || found.hosted !== null) return true;
  return !alarm.knows(earlier(found.due_at, found.opens_at));
}
