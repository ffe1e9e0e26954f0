// A schedule says when a job is due, or an event. Every slot (a moment at which it is due) is decided exactly once, and the decision is
// a row: what was made of the slot, and why. The job that a slot makes and its decision are one transaction, so there is
// never one without the other, and two processes that see the same slot cannot both fire it.
//
//   cursor ─────── slots ───────► now
//      │  every slot up to the cursor is decided; it goes back only when the clock had run ahead (step-back.ts)
//      ▼
//   fired · late · caught_up · shifted_dst · skipped_missed · skipped_overlap · skipped_paused · backfilled · manual
import { describeError, type DaybookError } from "../core/error.ts";
import { noSuch } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import { restoreTiming, type StoredTiming, type Timing } from "./timing/timing.ts";

export type DecisionKind =
  | ("fired" | "late" | "caught_up" | "shifted_dst" | "backfilled" | "manual")
  | ("skipped_missed" | "skipped_overlap" | "skipped_paused");

/** What a job that a schedule fired is told about its slot. */
export type FireInfo = {
  readonly name: string;
  /** The time of the slot by the schedule. */
  readonly nominalAt: number;
  readonly firedAt: number;
  readonly lateMs: number;
  /** The decision about the slot: `fired`, `late`, `caught_up` … */
  readonly reason: string;
  /** How many slots before it were missed and not made up for. */
  readonly missed: number;
};

export type Missed = "latest" | "all" | "skip";
export type FireConcurrency = "skip" | "queue" | "cancel" | "allow";
export type ScheduleSource = "code" | "api";

export type ScheduleRow = {
  seq: number;
  tenant_id: string;
  id: string;
  name: string;
  source: ScheduleSource;
  kind: StoredTiming["kind"];
  expression: string;
  zone: string;
  gap: StoredTiming["gap"];
  overlap: StoredTiming["overlap"];
  starts_at: number | null;
  ends_at: number | null;
  anchor_at: number | null;
  target: "job" | "template" | "event";
  target_name: string;
  /** JSON of what a fire enqueues; see target.ts. */
  job: string;
  missed: Missed;
  max_lateness_ms: number | null;
  concurrency: FireConcurrency;
  jitter_ms: number;
  max_fires: number | null;
  pause_after: number | null;
  fires: number;
  failures: number;
  /** Every slot up to here is decided. */
  cursor_at: number;
  /** Slots after the cursor and up to here may have been fired by a clock that ran ahead; null when none was. */
  ahead_until: number | null;
  /** When the next slot is fired: its time and the schedule's own jitter; null when there is none, or it is paused. */
  next_at: number | null;
  last_fired_at: number | null;
  paused_at: number | null;
  paused_note: string | null;
  removed_at: number | null;
  /** 1 in a copy of the book, until somebody releases it: it does not fire. */
  held: number;
  /** Decisions about slots up to here have left by retention: nobody knows any more what was fired. */
  pruned_until: number | null;
  revision: number;
  created_at: number;
  updated_at: number;
};

/** The channel that tells the processes that fire schedules to look for the earliest slot anew. */
export const schedulesChannel = "schedules";

/** The kind of the jobs that schedules make. */
export const scheduleKind = "schedule";

export function timingOf(row: ScheduleRow): Timing {
  const { kind, expression, zone, gap, overlap, starts_at: start, ends_at: end, anchor_at: anchor } = row;
  return restoreTiming({ kind, expression, zone, gap, overlap, start, end, anchor });
}

/** The same, for those who must go on when one cannot be read: a zone that this machine does not know. */
export function readTiming(row: ScheduleRow): Timing | { readonly unreadable: string } {
  try {
    return timingOf(row);
  } catch (error) {
    return { unreadable: `it cannot be read: ${describeError(error).message}` };
  }
}

/** How much later than its slots this schedule fires: some part of its jitter, the same each time and in each process. */
export function offsetOf({ id, jitter_ms: jitterMs }: Pick<ScheduleRow, "id" | "jitter_ms">): number {
  if (jitterMs === 0) return 0;
  let hash = 2_166_136_261;
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 16_777_619) >>> 0;
  return hash % (jitterMs + 1);
}

/** When the slot after the cursor is fired; null when the schedule is over, paused or held, or has fired as often as it may. */
export function nextFireAt(row: ScheduleRow, timing: Timing = timingOf(row)): number | null {
  if (row.paused_at !== null || row.removed_at !== null || row.held === 1) return null;
  if (row.max_fires !== null && row.fires >= row.max_fires) return null;
  const next = timing.next(row.cursor_at);
  return next === null ? null : next.at + offsetOf(row);
}

// One schedule by its name, for whoever changes it, and what to say when there is none.

export async function findSchedule(tx: Tx, name: string): Promise<ScheduleRow> {
  const row = await lockSchedule(tx, name);
  if (row !== undefined && row.removed_at === null) return row;
  throw await unknownSchedule((statement) => tx.all(statement), tx.tenant, name);
}

/** The row of a name, also of one that was removed. */
export async function lockSchedule(tx: Tx, name: string): Promise<ScheduleRow | undefined> {
  return tx.get<ScheduleRow>(
    sql`select * from daybook_schedule where tenant_id = ${tx.tenant} and name = ${name} ${forUpdate}`,
  );
}

type Read = (statement: Sql) => Awaitable<{ name: string }[]>;

export async function unknownSchedule(read: Read, tenant: string, name: string): Promise<DaybookError> {
  const names = await read(
    sql`select name from daybook_schedule where tenant_id = ${tenant} and removed_at is null order by name limit 1000`,
  );
  const known = names.map((each) => each.name);
  return noSuch("there is no schedule", name, known, { name });
}
