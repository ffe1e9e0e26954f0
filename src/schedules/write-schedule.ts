// Makes, changes, pauses and removes schedules. A new, edited or resumed schedule begins now and never catches up on what was
// due before. A removed name keeps its row and its cursor, so making it again cannot repeat a slot.
import { invalid, conflict, type DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { isoTime } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx, Store } from "../storage/store.ts";
import { assigned, oneRow } from "../storage/word.ts";
import type { Engine } from "../jobs/engine.ts";
import { cancelUnstarted } from "../jobs/settle/cancel.ts";
import { readActive } from "../jobs/template/template.ts";
import { onTimeMs } from "./decide.ts";
import { insertSkips, passedBy } from "./decision.ts";
import { countedFrom, isCounted, keepMoment, type CheckedSchedule } from "./options.ts";
import {
  findSchedule,
  lockSchedule,
  nextFireAt,
  offsetOf,
  readTiming,
  schedulesChannel,
  scheduleKind,
} from "./schedule.ts";
import type { ScheduleRow, ScheduleSource } from "./schedule.ts";
import { isSameTarget } from "./target.ts";
import { restoreTiming } from "./timing/timing.ts";

export async function createSchedule(tx: Tx, name: string, checked: CheckedSchedule): Promise<ScheduleRow> {
  const old = await lockSchedule(tx, name);
  if (old !== undefined && old.removed_at === null) {
    throw conflict(`schedule "${name}" exists: edit it, or remove it first`, { name });
  }
  return put(tx, name, countedFrom(tx.now, checked), "api", old);
}

/** Makes or changes a schedule that is defined in code; leaves it alone if nothing has changed. */
export async function upsertSchedule(tx: Tx, name: string, given: CheckedSchedule): Promise<ScheduleRow> {
  return putCode(tx, name, given, await lockSchedule(tx, name));
}

/** `old` is the row with that name, locked. */
export async function putCode(
  tx: Tx,
  name: string,
  given: CheckedSchedule,
  old: ScheduleRow | undefined,
): Promise<ScheduleRow> {
  const isOurs = old !== undefined && old.removed_at === null && old.source === "code";
  // "In ten minutes" counts once, from when it is first written, not from each start of the program.
  const checked = isOurs && isCounted(old, given) ? keepMoment(old, given) : countedFrom(tx.now, given);
  if (isOurs && isSame(old, checked)) return old;
  return put(tx, name, checked, "code", old);
}

/** `revision` is that of the row that the edit was made from. */
export async function editSchedule(
  tx: Tx,
  name: string,
  { checked, revision }: { readonly checked: CheckedSchedule; readonly revision: number },
): Promise<ScheduleRow> {
  const old = await findSchedule(tx, name);
  refuseCode(old, "edit");
  if (old.revision !== revision) {
    throw conflict(`schedule "${name}" was edited by another at this moment: look again`, { name });
  }
  const isMoment = checked.inMs === null && old.kind === "once" && old.expression === checked.expression;
  return put(tx, name, isMoment ? keepMoment(old, checked) : countedFrom(tx.now, checked), "api", old);
}

function refuseCode({ name, source }: ScheduleRow, verb: string): void {
  if (source !== "code") return;
  throw conflict(`schedule "${name}" is defined in code: ${verb} it there, or pause it here`, { name });
}

const timingKeys = ["kind", "expression", "zone", "gap", "ambiguous", "starts_at", "ends_at", "anchor_at"] as const;
const policyKeys = ["missed", "max_lateness_ms", "overlap", "jitter_ms", "max_fires", "pause_after"] as const;

function isSame(old: ScheduleRow, checked: CheckedSchedule): boolean {
  const keys = [...timingKeys, ...policyKeys, ...(["target", "target_name", "job", "for_all"] as const)];
  return keys.every((key) => old[key] === checked[key]);
}

function isOtherTiming(old: ScheduleRow, checked: CheckedSchedule): boolean {
  return timingKeys.some((key) => old[key] !== checked[key]);
}

/** Up to when an edit passes by slots that are due and not decided. A new timing passes by all of them. Other edits pass by missed
 *  slots; a slot that is due just now still fires. A program whose job has changed (say, its timeout) has not edited the
 *  schedule: null, and missed slots are made up for as usual. */
function passedUntil(tx: Tx, old: ScheduleRow, checked: CheckedSchedule, source: ScheduleSource): number | null {
  if (isOtherTiming(old, checked)) return tx.now;
  const isEdit = source === "api" || policyKeys.some((key) => old[key] !== checked[key]) || !isSameTarget(old, checked);
  return isEdit ? tx.now - offsetOf(old) - onTimeMs : null;
}

async function put(
  tx: Tx,
  name: string,
  checked: CheckedSchedule,
  source: ScheduleSource,
  old: ScheduleRow | undefined,
): Promise<ScheduleRow> {
  if (checked.target === "template") await readActive(tx, checked.target_name);
  const { timing, unknown: _unknown, inMs: _inMs, warning: _warning, ...settings } = checked;
  const begun = old === undefined || old.removed_at !== null;
  // An edit that lets a finished schedule go on starts it anew.
  const over = !begun && old.next_at === null && old.paused_at === null && old.held === 0;
  const until = begun || over ? tx.now : passedUntil(tx, old, checked, source);
  if (!begun && !over && until !== null) await passBy(tx, old, until);
  const counts = { fires: 0, failures: 0, held: 0 };
  const begin = { ...counts, paused_at: null, paused_note: null, removed_at: null, created_at: tx.now };
  const never = { ahead_until: null, next_at: null, last_fired_at: null, pruned_until: null };
  const unmade = { ...never, ...begin, seq: 0, tenant_id: tx.tenant, name, cursor_at: tx.now, revision: 0 };
  const base = old ?? { ...unmade, id: tx.ids() };
  const row: ScheduleRow = {
    ...base,
    ...(begun ? begin : {}),
    ...settings,
    source,
    updated_at: tx.now,
    revision: base.revision + 1,
    cursor_at: until === null ? base.cursor_at : Math.max(base.cursor_at, until),
  };
  const isNew = begun || isOtherTiming(old, checked);
  if (source === "api" && isNew && timing.next(row.cursor_at) === null) throw neverAgain(row, timing.words);
  const next: ScheduleRow = { ...row, next_at: nextFireAt(row, timing) };
  await save(tx, next, old === undefined);
  return next;
}

// In code a past moment is allowed, because the program outlives it.
function neverAgain({ name, kind, cursor_at: now }: ScheduleRow, words: string): DaybookError {
  const advice = kind === "once" ? "give a time to come" : "give a later end";
  return invalid(`schedule "${name}" would never fire: it has no slot after ${isoTime(now)} (${words}); ${advice}`);
}

// Writes a decision about the slots that are passed by, so that `why` has an answer.
async function passBy(tx: Tx, old: ScheduleRow, until: number): Promise<void> {
  const timing = readTiming(old);
  if (!("unreadable" in timing)) await insertSkips(tx, old, timing, { until, note: "it was edited" });
}

async function save(tx: Tx, row: ScheduleRow, isNew: boolean): Promise<void> {
  tx.wake(schedulesChannel);
  const { seq, tenant_id, id, name, ahead_until: _ahead, last_fired_at: _last, pruned_until: _pruned, ...saved } = row;
  if (!isNew) return void (await tx.run(sql`update daybook_schedule set ${assigned(saved)} where seq = ${seq}`));
  const made = await tx.run(
    sql`insert into daybook_schedule ${oneRow({ tenant_id, id, name, ...saved })} on conflict do nothing`,
  );
  if (made === 1) return;
  throw conflict(`schedule "${name}" was made by another at this moment: look again`, { name });
}

export async function pauseSchedule(tx: Tx, name: string, note: string | null): Promise<void> {
  if (note !== null) checkNote(note);
  const row = await findSchedule(tx, name);
  await save(tx, { ...row, paused_at: row.paused_at ?? tx.now, paused_note: note, next_at: null }, false);
}

function checkNote(note: unknown): void {
  const most = limits.noteBytesMax;
  if (typeof note !== "string") throw invalid(`the note is ${quote(note)}; it must be text`);
  if (note.includes("\0")) throw invalid("the note holds the character U+0000, which cannot be stored: leave it out");
  if (Buffer.byteLength(note) > most) throw invalid(`the note is longer than ${most} bytes: say it shorter`);
}

/** The slots of the pause become one decision and are not made up for. */
export async function resumeSchedule(tx: Tx, name: string): Promise<void> {
  const row = await findSchedule(tx, name);
  if (row.paused_at === null) return;
  await insertSkips(tx, row, restoreTiming(row), { until: tx.now, note: "it was paused" });
  const cursor_at = Math.max(row.cursor_at, tx.now);
  const next = { ...row, paused_at: null, paused_note: null, failures: 0, cursor_at };
  await save(tx, { ...next, next_at: nextFireAt(next) }, false);
}

/** Its decisions stay, and the jobs that it made go on. */
export async function removeSchedule(tx: Tx, name: string): Promise<void> {
  const row = await findSchedule(tx, name);
  refuseCode(row, "remove");
  await end(tx, row);
}

/** Ends a schedule that code no longer defines. A schedule that is gone, or was not made by code, stays as it is. */
export async function retireSchedule(tx: Tx, name: string): Promise<void> {
  const row = await lockSchedule(tx, name);
  if (row !== undefined && row.removed_at === null && row.source === "code") await end(tx, row);
}

async function end(tx: Tx, row: ScheduleRow): Promise<void> {
  await save(tx, { ...row, removed_at: tx.now, next_at: null, paused_at: null, paused_note: null }, false);
}

/** Cancels the waiting jobs of retired schedules of code whose names begin with `begin`: no program has their handlers any more, so
 *  they would wait for ever. Running jobs go on. Each cancel is its own transaction, because jobs are locked before schedules
 *  (fire.ts); if it stops half way, the next call does the rest. */
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

/** Run on a copy of the book: its schedules do not fire until a person releases them. Slots before the release are passed by,
 *  because the original may have fired them; later slots fire as usual. */
export const holdSchedules: readonly Sql[] = [
  sql`update daybook_schedule set held = 1, next_at = null where removed_at is null`,
];

export type HeldSchedules = { readonly tenant: string; readonly count: number };

export function countHeldSchedules(store: Store, tenant: string | undefined): Promise<HeldSchedules[]> {
  return store.readHeavy<HeldSchedules>(sql`select tenant_id as tenant, count(*) as count from daybook_schedule
    where held = 1 and removed_at is null ${ofTenant(tenant)} group by 1 order by 1`);
}

function ofTenant(tenant: string | undefined): Sql {
  return tenant === undefined ? sql`` : sql`and tenant_id = ${tenant}`;
}

/** Lets held schedules fire from now on, a few hundred per transaction. Returns how many. */
export async function releaseSchedules(store: Store, tenant: string | undefined): Promise<number> {
  for (let released = 0; ;) {
    const slice = await store.write((tx) => releaseSlice(tx, tenant));
    released += slice;
    if (slice < limits.schedulesPerTickMax) return released;
  }
}

async function releaseSlice(tx: Tx, tenant: string | undefined): Promise<number> {
  const held = await tx.all<ScheduleRow>(sql`select * from daybook_schedule where held = 1 and removed_at is null
    ${ofTenant(tenant)} order by seq limit ${limits.schedulesPerTickMax}`);
  for (const row of held) {
    const timing = readTiming(row);
    // A paused schedule passes by its slots when it is resumed; an unreadable one pauses when it is due.
    if (row.paused_at !== null || "unreadable" in timing) {
      const nextAt = row.paused_at === null ? tx.now : null;
      await tx.run(sql`update daybook_schedule set held = 0, next_at = ${nextAt} where seq = ${row.seq}`);
      continue;
    }
    await insertSkips(tx, row, timing, { until: tx.now, note: passedBy.restored });
    const next = { ...row, held: 0, cursor_at: Math.max(row.cursor_at, tx.now) };
    await tx.run(sql`update daybook_schedule set held = 0, cursor_at = ${next.cursor_at},
      next_at = ${nextFireAt(next, timing)} where seq = ${row.seq}`);
  }
  if (held.length > 0) tx.wake(schedulesChannel);
  return held.length;
}
