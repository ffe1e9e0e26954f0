// A schedule says when a job or an event is due. Each of its moments is a slot. Every slot is decided exactly once, and the
// decision is a row: what the slot became, and why. A decision and the job that it makes are one transaction, so neither exists
// without the other, and two processes that see the same slot cannot both fire it.
//
//   cursor ─────── slots ───────► now
//      │  every slot up to the cursor is decided; it goes back only when the clock had run ahead (step-back.ts)
//      ▼
//   fired · late · caught_up · shifted_dst · skipped_missed · skipped_overlap · skipped_paused · backfilled · manual
import { describeError, type DaybookError } from "../core/error.ts";
import { checkName } from "../core/name.ts";
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
export type FireOverlap = "skip" | "queue" | "cancel" | "allow";
export type ScheduleSource = "code" | "api";

export type ScheduleRow = StoredTiming & {
  seq: number;
  tenant_id: string;
  id: string;
  name: string;
  source: ScheduleSource;
  /** 1 when its definition in code is for all tenants. */
  for_all: number;
  target: "job" | "template" | "event";
  target_name: string;
  /** JSON of what a fire enqueues; see target.ts. */
  job: string;
  missed: Missed;
  max_lateness_ms: number | null;
  overlap: FireOverlap;
  jitter_ms: number;
  max_fires: number | null;
  pause_after: number | null;
  fires: number;
  failures: number;
  /** Every slot up to here is decided. */
  cursor_at: number;
  /** Slots after the cursor and up to here may have been fired by a clock that ran ahead; null when none was. */
  ahead_until: number | null;
  /** When the next slot is fired, including the schedule's jitter; null when there is none, or the schedule is paused. */
  next_at: number | null;
  last_fired_at: number | null;
  paused_at: number | null;
  paused_note: string | null;
  removed_at: number | null;
  /** 1 in a copy of the book until it is released: it does not fire. */
  held: number;
  /** Retention has removed the decisions about slots up to here, so it is not known what they fired. */
  pruned_until: number | null;
  revision: number;
  created_at: number;
  updated_at: number;
};

/** The channel that makes tickers look for the earliest slot anew. */
export const schedulesChannel = "schedules";

/** The kind of the jobs that schedules make. */
export const scheduleKind = "schedule";

/** The timing of a schedule, for callers that must go on when a timing cannot be read, such as a zone that this machine does not know. */
export function readTiming(row: ScheduleRow): Timing | { readonly unreadable: string } {
  try {
    return restoreTiming(row);
  } catch (error) {
    return { unreadable: `it cannot be read: ${describeError(error).message}` };
  }
}

/** How much later than its slots a schedule fires: a part of its jitter, the same every time and in every process. */
export function offsetOf({ id, jitter_ms: jitterMs }: Pick<ScheduleRow, "id" | "jitter_ms">): number {
  if (jitterMs === 0) return 0;
  let hash = 2_166_136_261;
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 16_777_619) >>> 0;
  return hash % (jitterMs + 1);
}

/** When the slot after the cursor is fired; null when the schedule is over, paused, held, or has reached its maximum. */
export function nextFireAt(row: ScheduleRow, timing: Timing = restoreTiming(row)): number | null {
  if (row.paused_at !== null || row.removed_at !== null || row.held === 1) return null;
  if (row.max_fires !== null && row.fires >= row.max_fires) return null;
  const next = timing.next(row.cursor_at);
  return next === null ? null : next.at + offsetOf(row);
}

/** Locks the schedule with this name; throws when there is none. */
export async function findSchedule(tx: Tx, name: string): Promise<ScheduleRow> {
  const row = await lockSchedule(tx, name);
  if (row !== undefined && row.removed_at === null) return row;
  throw await unknownSchedule((statement) => tx.all(statement), tx.tenant, name);
}

/** Locks the row of a name, even of a schedule that was removed. */
export async function lockSchedule(tx: Tx, name: string): Promise<ScheduleRow | undefined> {
  return tx.get<ScheduleRow>(
    sql`select * from daybook_schedule where tenant_id = ${tx.tenant} and name = ${name} ${forUpdate}`,
  );
}

type Read = (statement: Sql) => Awaitable<{ name: string }[]>;

export async function unknownSchedule(read: Read, tenant: string, name: string): Promise<DaybookError> {
  if (typeof name !== "string") checkName(name, "schedule name");
  const names = await read(
    sql`select name from daybook_schedule where tenant_id = ${tenant} and removed_at is null order by name limit 1000`,
  );
  const known = names.map((each) => each.name);
  return noSuch("there is no schedule", name, known, { name });
}
