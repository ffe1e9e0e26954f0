// What a schedule of code had fired when the code stopped defining it: nobody has its handler any more, so it would wait for
// ever. What runs already ends as it will.
import type { Engine } from "../jobs/engine.ts";
import { cancelUnstarted } from "../jobs/cancel.ts";
import { sql } from "../storage/sql.ts";
import { scheduleKind } from "./schedule.ts";

/** Cancels the jobs that have not begun of the schedules of code that were retired and whose names begin so. Each is a
 *  transaction of its own, because jobs are locked before schedules (settled.ts); one that is cut off is made up for by the
 *  next. */
export async function cancelFires(engine: Engine, tenant: string, begin: string): Promise<void> {
  const { store } = engine;
  const open = await store.read<{ id: string }>(sql`select job.id
    from daybook_schedule schedule cross join daybook_line line cross join daybook_job job
    where schedule.tenant_id = ${tenant} and substr(schedule.name, 1, ${begin.length}) = ${begin}
      and schedule.source = 'code' and schedule.removed_at is not null and job.tenant_id = ${tenant}
      and line.kind = ${scheduleKind} and line.kind_seq = schedule.seq and line.kind is not null
      and line.started_at is null and job.seq = line.seq order by line.seq`);
  for (const { id } of open) {
    await store.write((tx) => cancelUnstarted(tx, engine, id), { tenant });
  }
}
