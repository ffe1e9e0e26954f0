// Removes old decisions, in slices. The cursor stays, so no slot is decided again, and the schedule remembers up to where its
// decisions are gone.
import { durationMs, type Duration } from "../core/duration.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf, forUpdate, greatest } from "../storage/word.ts";
import { scheduleKind } from "./schedule.ts";

export type PruneDecisions = {
  /** Only decisions that were made at least this long ago. */
  readonly olderThan: Duration;
  /** Counts the decisions and removes none. */
  readonly dryRun?: boolean;
};

export type PrunedDecisions = { readonly dryRun: boolean; readonly decisions: number };

export async function pruneDecisions(store: Store, tenant: string, options: PruneDecisions): Promise<PrunedDecisions> {
  refuseUnknown(options, ["olderThan", "dryRun"], "the prune of decisions");
  const decidedBy = store.time.atLeast() - durationMs(options.olderThan, "olderThan");
  const which = leaving(tenant, decidedBy);
  if (options.dryRun === true) {
    const [row] = await store.readLong<{ n: number }>(
      sql`select count(*) as n from daybook_decision decision ${which}`,
    );
    return { dryRun: true, decisions: row?.n ?? 0 };
  }
  for (let decisions = 0; ;) {
    const removed = await store.write((tx) => removeSome(tx, which), { tenant });
    decisions += removed;
    if (removed < limits.pruneRowsMax) return { dryRun: false, decisions };
  }
}

/** A decision stays until its job and every retry of it have ended: an open job always has its decision. */
function leaving(tenant: string, decidedBy: number): Sql {
  return sql`where decision.tenant_id = ${tenant} and decision.decided_at <= ${decidedBy} and not exists (
    select 1 from daybook_job first join daybook_line line
        on line.kind = ${scheduleKind} and line.kind_seq = decision.schedule_seq and line.kind is not null
      join daybook_job later on later.seq = line.seq and coalesce(later.chain_seq, later.seq) = first.seq
      where first.tenant_id = decision.tenant_id and first.id = decision.job_id)`;
}

async function removeSome(tx: Tx, which: Sql): Promise<number> {
  const found = await tx.all<{ seq: number; schedule_seq: number; until_at: number }>(
    sql`select seq, schedule_seq, until_at from daybook_decision decision ${which} order by seq limit ${limits.pruneRowsMax}`,
  );
  if (found.length === 0) return 0;
  const until = new Map<number, number>();
  for (const { schedule_seq: schedule, until_at: at } of found) {
    until.set(schedule, Math.max(at, until.get(schedule) ?? at));
  }
  const schedules = [...until.keys()].toSorted((a, b) => a - b);
  await tx.all(
    sql`select seq from daybook_schedule where seq ${anyOf("integer", schedules)} order by seq ${forUpdate}`,
  );
  for (const [schedule, at] of until) {
    await tx.run(sql`update daybook_schedule set pruned_until = ${greatest}(coalesce(pruned_until, ${at}), ${at})
      where seq = ${schedule}`);
  }
  const seqs = found.map(({ seq }) => seq);
  return tx.run(sql`delete from daybook_decision where seq ${anyOf("integer", seqs)}`);
}
