// Decisions as they are written and leave: one row for a slot, or for a span of slots that none of was fired.
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx, Store } from "../storage/store.ts";
import { account } from "../telemetry/retention/remove.ts";
import { insertInto, anyOf, forUpdate, greatest, type RowOf, type Nullable } from "../storage/word.ts";
import { skip, type Skip } from "./decide.ts";
import { scheduleKind, type DecisionKind, type ScheduleRow } from "./schedule.ts";
import { spanOf } from "./timing/slot.ts";
import type { Timing } from "./timing/timing.ts";

const decisionColumns = {
  tenant_id: "text",
  schedule_seq: "integer",
  slot_at: "integer",
  until_at: "integer",
  slots: "integer",
  kind: "text",
  decided_at: "integer",
  local: "text",
  job_id: "text",
  event_id: "text",
  note: "text",
} as const;

type Columns = RowOf<typeof decisionColumns>;

/** `job_id` or `event_id` is what was fired. */
export type DecisionRow = Omit<Columns, "kind" | "local" | "job_id" | "event_id" | "note"> &
  Nullable<Pick<Columns, "local" | "job_id" | "event_id" | "note">> & { kind: DecisionKind };

export async function insertDecisions(tx: Tx, rows: readonly DecisionRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.run(insertInto("daybook_decision", decisionColumns, rows));
}

type Decided = Pick<DecisionRow, "slot_at" | "kind" | "local"> & Partial<DecisionRow>;

/** The row of a decision about one slot, which fired nothing, unless `decided` says otherwise. */
export function decisionRow(tx: Tx, { tenant_id, seq }: ScheduleRow, decided: Decided): DecisionRow {
  const nothing = { job_id: null, event_id: null, note: null };
  const slot = { tenant_id, schedule_seq: seq, until_at: decided.slot_at, slots: 1, decided_at: tx.now };
  return { ...slot, ...nothing, ...decided };
}

export function skipped(tx: Tx, row: ScheduleRow, { first, last, slots, kind, note }: Skip): DecisionRow {
  return decisionRow(tx, row, { slot_at: first.at, until_at: last.at, slots, kind, local: first.local, note });
}

/** Why slots are passed by that another book or a person has fired, or will. They are not made up for. */
export const passedBy = {
  restored: "the book was restored from a backup",
  filled: "a later stretch was filled in",
} as const;

/** Writes one decision about all slots after the cursor that an edit, a resume or a backfill passes by. */
export async function insertSkips(
  tx: Tx,
  row: ScheduleRow,
  whole: Timing,
  { until, note }: { readonly until: number; readonly note: string },
): Promise<void> {
  const timing = await undecided(tx, row, whole);
  const skips: Skip[] = [];
  const { cursor_at: after, paused_at: paused } = row;
  if (paused === null) skip(timing, after, until, "skipped_missed", note, skips);
  else {
    // Slots before the pause were missed, not paused; they are not made up for either.
    const before = Math.min(until, paused - 1);
    skip(timing, after, before, "skipped_missed", "it was paused before anybody had decided", skips);
    const words = row.paused_note === null ? "it was paused" : `it was paused: ${row.paused_note}`;
    skip(timing, Math.max(after, before), until, "skipped_paused", words, skips);
  }
  await insertDecisions(
    tx,
    skips.map((each) => skipped(tx, row, each)),
  );
}

/** The timing without the slots after the cursor that a clock which ran ahead has fired: those are not decided again when their time
 *  comes. */
export async function undecided(tx: Tx, row: ScheduleRow, timing: Timing): Promise<Timing> {
  if (row.ahead_until === null || row.ahead_until <= row.cursor_at) return timing;
  const fired = await tx.all<{ slot_at: number }>(sql`select slot_at from daybook_decision
    where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq} and slot_at > ${row.cursor_at}
    order by slot_at limit ${limits.bulkRowsMax}`);
  const slots = new Set(fired.map(({ slot_at: at }) => at));
  const next: Timing["next"] = (after) => {
    let slot = timing.next(after);
    while (slot !== null && slots.has(slot.at)) slot = timing.next(slot.at);
    return slot;
  };
  return { ...timing, next, span: (after, until, most) => spanOf(next, after, until, most) };
}

/** Removes the decisions that were made up to then, in slices, and says how many. The cursor stays, so no slot is decided again, and
 *  the schedule remembers up to where its decisions are gone. */
export async function retainDecisions(
  store: Store,
  tenant: string,
  { by, dryRun }: { readonly by: number; readonly dryRun: boolean },
): Promise<{ readonly decisions: number; readonly slices: number }> {
  // Most tenants have nothing old, and a long read starts a thread. What is fired by hand has a slot a little after its decision.
  const old =
    await store.readHeavy(sql`select 1 as one from daybook_schedule schedule where schedule.tenant_id = ${tenant}
    and exists (select 1 from daybook_decision decision where decision.tenant_id = schedule.tenant_id
      and decision.schedule_seq = schedule.seq and decision.slot_at <= ${by + limits.retainMs}) limit 1`);
  if (old.length === 0) return { decisions: 0, slices: 0 };
  const which = leaving(tenant, by);
  if (dryRun) {
    const [count] = await store.readLong<{ n: number }>(
      sql`select count(*) as n from daybook_decision decision ${which}`,
    );
    return { decisions: count?.n ?? 0, slices: 0 };
  }
  let [decisions, slices, after] = [0, 0, 0];
  await store.readsLong(async (reader) => {
    for (;;) {
      const found = await reader.all<{ seq: number }>(sql`select decision.seq from daybook_decision decision ${which}
        and decision.seq > ${after} order by decision.seq limit ${limits.bulkRowsMax}`);
      for (let from = 0; from < found.length; from += limits.retainRowsMax, slices++) {
        const some = found.slice(from, from + limits.retainRowsMax).map(({ seq }) => seq);
        decisions += await store.write((tx) => removeSome(tx, some), { tenant });
      }
      after = found.at(-1)?.seq ?? 0;
      if (found.length < limits.bulkRowsMax) return;
    }
  });
  return { decisions, slices };
}

/** A decision stays until its job and every retry of it have ended: an open job always has its decision. What is open is found once,
 *  and not for each decision. */
function leaving(tenant: string, decidedBy: number): Sql {
  return sql`where decision.tenant_id = ${tenant} and decision.decided_at <= ${decidedBy}
    and coalesce(decision.job_id, '') not in (select first.id from daybook_line line
      join daybook_job later on later.seq = line.seq
      join daybook_job first on first.seq = coalesce(later.chain_seq, later.seq)
      where line.kind = ${scheduleKind} and line.kind is not null and first.tenant_id = ${tenant})`;
}

/** Those of the found ones that still may leave: a job may have been tried again since. Only their own chains are looked at here, and
 *  each job is found by its retry, because to read all that is open holds the event loop. */
async function removeSome(tx: Tx, some: readonly number[]): Promise<number> {
  const found = await tx.all<{ seq: number; schedule_seq: number; until_at: number; decided_at: number }>(
    sql`with recursive chain (decision_seq, seq) as (
        select decision.seq, job.seq from daybook_decision decision
          join daybook_job job on job.id = decision.job_id where decision.seq ${anyOf("integer", some)}
        union all select chain.decision_seq, job.seq from chain cross join daybook_job job where job.retry_of = chain.seq
      )
      select seq, schedule_seq, until_at, decided_at from daybook_decision decision where seq ${anyOf("integer", some)}
        and seq not in (select chain.decision_seq from chain join daybook_line line on line.seq = chain.seq)
      order by seq`,
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
  const removed = await tx.run(sql`delete from daybook_decision where seq ${anyOf("integer", seqs)}`);
  const made = found.map(({ decided_at: at }) => at);
  await account(tx, tx.tenant, [{ what: "decision", reason: "age", removed, made }]);
  return removed;
}
