// Schedules and their decisions as their reader sees them.
import { checkCount } from "../core/count.ts";
import { describeError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import {
  timingOf,
  type DecisionKind,
  type FireConcurrency,
  type Missed,
  type ScheduleRow,
  type ScheduleSource,
} from "./schedule.ts";
import { unknownSchedule } from "./find-schedule.ts";
import type { StoredTarget } from "./target.ts";
import type { DecisionRow } from "./write-decisions.ts";

export type ScheduleRecord = {
  readonly id: string;
  readonly name: string;
  readonly source: ScheduleSource;
  readonly kind: "cron" | "every" | "once" | "daily";
  readonly expression: string;
  readonly zone: string;
  readonly gap: "shift" | "skip";
  readonly overlap: "first" | "last" | "both";
  readonly start: number | null;
  readonly end: number | null;
  /** For people: "every day at 07:00 (Europe/Madrid)". */
  readonly words: string;
  readonly target: { readonly kind: "job" | "template" | "event"; readonly name: string };
  /** Of an event, its payload. */
  readonly params: unknown;
  readonly missed: Missed;
  /** Null: one period, at most a day, for `latest`; a day for `all`. */
  readonly maxLatenessMs: number | null;
  readonly concurrency: FireConcurrency;
  readonly jitterMs: number;
  readonly maxFires: number | null;
  readonly pauseAfterFailures: number | null;
  readonly nextAt: number | null;
  readonly lastFiredAt: number | null;
  readonly fires: number;
  readonly failures: number;
  /** In a copy of the book, until it is released: it does not fire. */
  readonly held: boolean;
  readonly paused: { readonly at: number; readonly note: string | null } | null;
  readonly createdAt: number;
  readonly updatedAt: number;
};

export type DecisionRecord = {
  /** The slot; of a span the first. */
  readonly at: number;
  /** The last slot of a span; otherwise the slot itself. */
  readonly until: number;
  readonly slots: number;
  readonly kind: DecisionKind;
  readonly decidedAt: number;
  /** What the local clock reads by the expression; null for one that was triggered by hand. */
  readonly local: string | null;
  /** The job that the slot made, or the event that it published. */
  readonly jobId: string | null;
  readonly eventId: string | null;
  readonly note: string | null;
};

export type SchedulePage = { readonly items: readonly ScheduleRecord[]; readonly next: string | null };
export type DecisionPage = { readonly items: readonly DecisionRecord[]; readonly next: string | null };

export async function readOne(store: Store, tenant: string, name: string): Promise<ScheduleRow> {
  const [row] = await store.read<ScheduleRow>(
    sql`select * from daybook_schedule where tenant_id = ${tenant} and name = ${name} and removed_at is null`,
  );
  if (row !== undefined) return row;
  throw await unknownSchedule((statement) => store.readHeavy(statement), tenant, name);
}

export type ScheduleFilter = { readonly limit?: number; readonly after?: string };

/** By name. */
export async function listSchedules(store: Store, tenant: string, filter: ScheduleFilter): Promise<SchedulePage> {
  refuseUnknown(filter, ["limit", "after"], "the list of schedules");
  const limit = checkCount(filter.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const after: Sql = filter.after === undefined ? sql`` : sql`and name > ${filter.after}`;
  const rows = await store.readHeavy<ScheduleRow>(sql`select * from daybook_schedule
    where tenant_id = ${tenant} and removed_at is null ${after} order by name limit ${limit + 1}`);
  const items = rows.slice(0, limit).map(toSchedule);
  return { items, next: rows.length > limit ? (items.at(-1)?.name ?? null) : null };
}

/** Newest slot first. */
export async function listDecisions(
  store: Store,
  tenant: string,
  name: string,
  filter: ScheduleFilter,
): Promise<DecisionPage> {
  refuseUnknown(filter, ["limit", "after"], "the list of decisions");
  const limit = checkCount(filter.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const { seq } = await readOne(store, tenant, name);
  const after: Sql = filter.after === undefined ? sql`` : sql`and slot_at < ${checkCursor(filter.after)}`;
  const rows =
    await store.readHeavy<DecisionRead>(sql`select slot_at, until_at, slots, kind, decided_at, local, job_id, event_id, note
    from daybook_decision where tenant_id = ${tenant} and schedule_seq = ${seq} ${after}
    order by slot_at desc limit ${limit + 1}`);
  const items = rows.slice(0, limit).map(toDecision);
  return { items, next: rows.length > limit ? String(items.at(-1)?.at ?? "") : null };
}

function checkCursor(after: string): number {
  if (/^-?\d{1,15}$/.test(after)) return Number(after);
  throw invalid(`after is ${quote(after)}, which is not the "next" of a page of decisions`);
}

export type DecisionRead = Omit<DecisionRow, "tenant_id" | "schedule_seq">;

export function toDecision(row: DecisionRead): DecisionRecord {
  return {
    at: row.slot_at,
    until: row.until_at,
    slots: row.slots,
    kind: row.kind,
    decidedAt: row.decided_at,
    local: row.local,
    jobId: row.job_id,
    eventId: row.event_id,
    note: row.note,
  };
}

export function toSchedule(row: ScheduleRow): ScheduleRecord {
  const { prepared, overrides } = JSON.parse(row.job) as StoredTarget;
  return {
    id: row.id,
    name: row.name,
    source: row.source,
    kind: row.kind,
    expression: row.expression,
    zone: row.zone,
    gap: row.gap,
    overlap: row.overlap,
    start: row.starts_at,
    end: row.ends_at,
    words: wordsOf(row),
    target: { kind: row.target, name: row.target_name },
    params: row.target === "template" ? overrides : (JSON.parse(prepared.params) as unknown),
    missed: row.missed,
    maxLatenessMs: row.max_lateness_ms,
    concurrency: row.concurrency,
    jitterMs: row.jitter_ms,
    maxFires: row.max_fires,
    pauseAfterFailures: row.pause_after,
    nextAt: row.next_at,
    lastFiredAt: row.last_fired_at,
    fires: row.fires,
    failures: row.failures,
    held: row.held === 1,
    paused: row.paused_at === null ? null : { at: row.paused_at, note: row.paused_note },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

// One that cannot be read here (a zone that this machine does not know) must not hide the others of a list.
function wordsOf(row: ScheduleRow): string {
  try {
    return timingOf(row).words;
  } catch (error) {
    return `${row.kind} ${row.expression} (${row.zone}): ${describeError(error).message}`;
  }
}
