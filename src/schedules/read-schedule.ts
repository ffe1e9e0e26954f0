// Reads schedules and their decisions, and says why a schedule did or did not run.
import { toCounted, type Counted } from "../core/count.ts";
import { limits } from "../core/limits.ts";
import { checkLimit, cutPage, checkPage, type Page, type PageOptions } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { unknownSchedule, offsetOf, readTiming } from "./schedule.ts";
import type { DecisionKind, FireOverlap, Missed, ScheduleRow, ScheduleSource } from "./schedule.ts";
import type { StoredTarget } from "./target.ts";
import { restoreTiming, type Timing } from "./timing/timing.ts";

export type ScheduleRecord = {
  readonly id: string;
  readonly name: string;
  readonly source: ScheduleSource;
  readonly kind: "cron" | "every" | "once" | "daily";
  readonly expression: string;
  readonly zone: string;
  readonly gap: "shift" | "skip";
  readonly ambiguous: "first" | "last" | "both";
  readonly startsAt: number | null;
  readonly endsAt: number | null;
  /** For people: "every day at 07:00 (Europe/Madrid)". */
  readonly words: string;
  readonly target: { readonly kind: "job" | "template" | "event"; readonly name: string };
  /** Of an event, its payload. */
  readonly params: unknown;
  readonly missed: Missed;
  /** Null: one period, at most a day, for `latest`; a day for `all`. */
  readonly maxLatenessMs: number | null;
  readonly overlap: FireOverlap;
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
  readonly untilAt: number;
  readonly slots: number;
  readonly kind: DecisionKind;
  readonly decidedAt: number;
  /** The local time of the slot; null for one that was triggered by hand. */
  readonly local: string | null;
  /** The job that the slot made, or the event that it published. */
  readonly jobId: string | null;
  readonly eventId: string | null;
  readonly note: string | null;
};

export type SchedulePage = Page<ScheduleRecord>;
export type DecisionPage = Page<DecisionRecord>;

export async function readOne(store: Store, tenant: string, name: string): Promise<ScheduleRow> {
  const [row] = await store.read<ScheduleRow>(
    sql`select * from daybook_schedule where tenant_id = ${tenant} and name = ${name} and removed_at is null`,
  );
  if (row !== undefined) return row;
  throw await unknownSchedule((statement) => store.readHeavy(statement), tenant, name);
}

export type ScheduleFilter = PageOptions;

/** By name. */
export async function listSchedules(store: Store, tenant: string, filter: ScheduleFilter): Promise<SchedulePage> {
  refuseUnknown(filter, ["limit", "after"], "the list of schedules");
  const limit = checkLimit(filter.limit);
  const after: Sql = filter.after === undefined ? sql`` : sql`and name > ${filter.after}`;
  const rows = await store.readHeavy<ScheduleRow>(sql`select * from daybook_schedule
    where tenant_id = ${tenant} and removed_at is null ${after} order by name limit ${limit + 1}`);
  return cutPage(rows, limit, (row) => row.name, toSchedule);
}

export type Fires = {
  /** How many schedules are due for longer than a minute: nobody who works on the book has decided their slot. */
  readonly late: Counted;
  readonly next: { readonly name: string; readonly nextAt: number } | null;
};

const lateMs = 60_000;

/** By the schedules of the tenant, and not by the index of those that are due, which holds all tenants'. */
export async function readFires(store: Store, tenant: string): Promise<Fires> {
  const [found] = await store.readHeavy<{ late: number; name: string | null; next_at: number }>(sql`with
      firing as materialized (select name, next_at from daybook_schedule
        where tenant_id = ${tenant} and next_at is not null and held = 0 limit ${limits.countedMax + 1}),
      first as (select name, next_at from firing order by next_at, name limit 1)
    select (select count(*) from firing where next_at < ${store.clock.now() - lateMs}) as late, first.name, first.next_at
    from (select 1 as one) as one left join first on true`);
  const { late = 0, name = null, next_at: nextAt = 0 } = found ?? {};
  return { late: toCounted(late), next: name === null ? null : { name, nextAt } };
}

/** Newest slot first. */
export async function listDecisions(
  store: Store,
  tenant: string,
  name: string,
  filter: ScheduleFilter,
): Promise<DecisionPage> {
  refuseUnknown(filter, ["limit", "after"], "the list of decisions");
  const { limit, after } = checkPage(filter);
  const { seq } = await readOne(store, tenant, name);
  const rows =
    await store.readHeavy<DecisionRecord>(sql`${selectDecisions} where tenant_id = ${tenant} and schedule_seq = ${seq}
      and slot_at < ${after ?? Number.MAX_SAFE_INTEGER} order by slot_at desc limit ${limit + 1}`);
  return cutPage(rows, limit, (row) => row.at);
}

const selectDecisions = sql`select slot_at as "at", until_at as "untilAt", slots, kind, decided_at as "decidedAt", local,
    job_id as "jobId", event_id as "eventId", note
  from daybook_decision`;

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
    ambiguous: row.ambiguous,
    startsAt: row.starts_at,
    endsAt: row.ends_at,
    words: wordsOf(row),
    target: { kind: row.target, name: row.target_name },
    params: row.target === "template" ? overrides : (JSON.parse(prepared.params) as unknown),
    missed: row.missed,
    maxLatenessMs: row.max_lateness_ms,
    overlap: row.overlap,
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

// A schedule that this machine cannot read (an unknown zone) must not hide the others of a list.
function wordsOf(row: ScheduleRow): string {
  const timing = readTiming(row);
  return "words" in timing ? timing.words : `${row.kind} ${row.expression} (${row.zone}): ${timing.unreadable}`;
}

/** Why a schedule did or did not run at a time: the decision about that slot, or the reason why there is none. */
export type Why = {
  /** False when the schedule is not due at that time. */
  readonly isSlot: boolean;
  readonly decision: DecisionRecord | null;
  /** The answer, in sentences. */
  readonly because: readonly string[];
};

const meanings: Readonly<Record<DecisionKind, string>> = {
  fired: "It ran: the slot was fired on time.",
  late: "It ran late: no process was working at the time, and the latest missed slot was made up for.",
  caught_up: "It ran late: no process was working at the time, and every missed slot was caught up.",
  shifted_dst: "It ran at the first valid moment: the local time of the slot did not exist on that day.",
  backfilled: "It ran because somebody asked for this stretch to be filled in.",
  manual: "It ran because somebody triggered it by hand.",
  skipped_missed: "It did not run: no process was working at the time, and it was not made up for.",
  skipped_overlap: "It did not run: the job of the slot before had not ended.",
  skipped_paused: "It did not run: the schedule was paused.",
};

export async function whySchedule(store: Store, row: ScheduleRow, at: number): Promise<Why> {
  const timing = restoreTiming(row);
  // A person names a minute; the slot may be at any second of it.
  const until = at % 60_000 === 0 ? at + 59_999 : at;
  const [found] =
    await store.readHeavy<DecisionRecord>(sql`${selectDecisions} where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq}
      and slot_at <= ${until} and until_at >= ${at} order by slot_at limit 1`);
  const slot = timing.next(at - 1);
  const isSlot = slot !== null && slot.at <= until;
  // A slot of a timing that has been edited since still has its decision.
  if (found !== undefined && (isSlot || found.slots === 1)) {
    const because = [meanings[found.kind]];
    const span = `${found.slots} slots, from ${isoTime(found.at)} to ${isoTime(found.untilAt)}`;
    if (found.slots > 1) because.push(`The decision is about ${span}.`);
    if (found.note !== null) because.push(`Its note: ${found.note}.`);
    if (found.jobId !== null) because.push(`Its job is ${found.jobId}; "jobs explain" tells what became of that.`);
    if (found.eventId !== null) because.push(`Its event is ${found.eventId}; "events show" tells who heard it.`);
    return { isSlot: true, decision: found, because };
  }
  const because = isSlot ? whyUndecided(row, slot.at, store.clock.now()) : noSlot(row, timing, at);
  return { isSlot, decision: null, because };
}

function whyUndecided(row: ScheduleRow, at: number, now: number): string[] {
  const fireAt = at + offsetOf(row);
  if (row.paused_at !== null && at >= row.paused_at) {
    const note = row.paused_note === null ? "" : ` (${row.paused_note})`;
    return [`It is paused since ${isoTime(row.paused_at)}${note}: resume it, and it goes on with what is due then.`];
  }
  if (at <= row.created_at) return [`The schedule was made at ${isoTime(row.created_at)}, after that slot.`];
  if (row.pruned_until !== null && at <= row.pruned_until) {
    return [`Its decision is not kept any more: those up to ${isoTime(row.pruned_until)} have left by retention.`];
  }
  // Also before the cursor: a schedule that reached its maximum passes by the rest of that look's slots.
  if (row.max_fires !== null && row.fires >= row.max_fires) return [`It has fired ${row.fires} times, which is all.`];
  if (at <= row.cursor_at) {
    return [
      `The slot is not in the ledger: the schedule was edited after it, or began after it.`,
      `Edited or made again at ${isoTime(row.updated_at)}.`,
    ];
  }
  if (fireAt > now) {
    const jitter = row.jitter_ms > 0 ? `; with its jitter it fires at ${isoTime(fireAt)}` : "";
    return [`It is due then, which is ${at > now ? "in the future" : "now"}${jitter}.`];
  }
  return ["It is due and not decided yet: no process that works has looked since. Start a worker."];
}

function noSlot(row: ScheduleRow, timing: Timing, at: number): string[] {
  const { starts_at: start, ends_at: end } = row;
  const next = timing.next(at);
  const before = timing.span(at - 366 * 86_400_000, at - 1, 1)?.last;
  return [
    `It is not due at ${isoTime(at)}: ${timing.words}.`,
    ...(start !== null && at < start ? [`It begins at ${isoTime(start)}.`] : []),
    ...(end !== null && at >= end ? [`It ended at ${isoTime(end)}.`] : []),
    ...(before === undefined ? [] : [`The slot before is ${isoTime(before.at)}.`]),
    next === null ? "There is none after it." : `The next one is ${isoTime(next.at)}.`,
  ];
}
