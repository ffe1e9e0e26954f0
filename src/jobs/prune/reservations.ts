// Reservations that nothing else takes with it: those made by hand, and those whose job is gone. They have ended, so nobody
// changes them any more, and they leave by their age alone; a rule that asks for names or ends of jobs is not about them.
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import type { Rule } from "./rule.ts";

export async function pruneReservations(
  store: Store,
  rule: Rule,
  dryRun: boolean,
): Promise<{ readonly reservations: number; readonly slices: number }> {
  if (!rule.byAge) return { reservations: 0, slices: 0 };
  const [{ leave } = { leave: 0 }] = await store.readHeavy<{ leave: number }>(
    sql`select count(*) as leave from daybook_reservation reservation where ${leaving(rule)}`,
  );
  if (dryRun || leave === 0) return { reservations: leave, slices: Math.min(leave, 1) };
  for (let [reservations, slices] = [0, 0]; ;) {
    const gone = await store.write((tx) => removeSlice(tx, rule));
    if (gone === 0) return { reservations, slices };
    reservations += gone;
    slices++;
  }
}

async function removeSlice(tx: Tx, rule: Rule): Promise<number> {
  const gone = await tx.run(sql`delete from daybook_reservation where seq in (
    select seq from daybook_reservation reservation where ${leaving(rule)} order by seq limit ${limits.pruneRowsMax})`);
  if (gone === 0) return 0;
  await tx.run(sql`insert into daybook_pruning (tenant_id, pruned_at, what, filter, removed)
    values (${rule.tenant}, ${tx.now}, 'reservation', ${rule.filter}, ${gone})`);
  return gone;
}

function leaving({ tenant, endedBy, lane }: Rule): Sql {
  return sql`reservation.tenant_id = ${tenant} and reservation.status <> 'active' and reservation.ended_at <= ${endedBy}
    ${lane === null ? sql`` : sql`and reservation.lane_seq = ${lane}`}
    and not exists (select 1 from daybook_job job where job.tenant_id = reservation.tenant_id and job.id = reservation.job_id)`;
}
