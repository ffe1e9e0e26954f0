// A delivery that has ended is made again: the next job of the same chain, with all its attempts before it.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { jobNow, type JobRow } from "../jobs/job.ts";
import { makeRetry } from "../jobs/outcome.ts";
import { letterOf } from "./dead-letter.ts";
import { deliveryName, type ListenerRow } from "./listener.ts";

/** The last delivery of each of these events to a listener, where there is one, by the event's number. */
export async function lastDeliveries(
  tx: Tx,
  { tenant_id: tenant, name }: Pick<ListenerRow, "tenant_id" | "name">,
  events: readonly number[],
): Promise<Map<number, JobRow>> {
  const rows = await tx.all<JobRow>(sql`with recursive chain (seq) as (
      select seq from daybook_job job where tenant_id = ${tenant} and kind = 'delivery' and retry_of is null
        and kind_seq ${anyOf("integer", events)} and name = ${deliveryName(name)}
      union all select job.seq from chain cross join daybook_job job where job.retry_of = chain.seq)
    select job.* from chain cross join ${jobNow}
    where job.seq = chain.seq and not exists (select 1 from daybook_job child where child.retry_of = job.seq)`);
  return new Map(rows.map((row) => [row.kind_seq ?? 0, row]));
}

export async function deliverAgain(tx: Tx, listener: ListenerRow, last: JobRow): Promise<void> {
  const attempt = last.attempt + 1;
  const allowed = { ...last, attempts: last.attempt + listener.attempts };
  await makeRetry(tx, allowed, { attempt, losses: 0, alone: 0, backoff: false, origin: "manual" });
  const letter = await letterOf(tx, last);
  if (letter?.status !== "dead") return;
  await tx.run(
    sql`update daybook_dead_letter set status = 'redriving', redrives = redrives + 1 where seq = ${letter.seq}`,
  );
}
