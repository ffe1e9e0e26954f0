// Makes and changes schedules. A new or edited one begins now: it never catches up on what was due before, and no more does
// one that was paused. A name that was removed keeps its row and its cursor, so making it again cannot repeat a slot.
import { DaybookError } from "../core/error.ts";
import { nearest } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import type { CheckedSchedule } from "./options.ts";
import {
  nextFireAt,
  readTiming,
  schedulesChannel,
  timingOf,
  type ScheduleRow,
  type ScheduleSource,
} from "./schedule.ts";
import { refuseMissingTemplate } from "./target.ts";
import { insertSkips } from "./write-decisions.ts";

export async function findSchedule(tx: Tx, name: string): Promise<ScheduleRow> {
  const row = await readSchedule(tx, name);
  if (row !== undefined && row.removed_at === null) return row;
  const names = await tx.all<{ name: string }>(
    sql`select name from schedule where tenant_id = ${tx.tenant} and removed_at is null order by name limit 1000`,
  );
  const near = nearest(
    name,
    names.map((each) => each.name),
  );
  const hint = near === undefined ? "" : `: did you mean "${near}"?`;
  throw new DaybookError("not_found", `there is no schedule "${name}"${hint}`, { details: { name } });
}

async function readSchedule(tx: Tx, name: string): Promise<ScheduleRow | undefined> {
  return tx.get<ScheduleRow>(
    sql`select * from schedule where tenant_id = ${tx.tenant} and name = ${name} ${forUpdate}`,
  );
}

export async function createSchedule(tx: Tx, name: string, checked: CheckedSchedule): Promise<ScheduleRow> {
  const old = await readSchedule(tx, name);
  if (old !== undefined && old.removed_at === null) {
    throw new DaybookError("conflict", `schedule "${name}" exists: edit it, or remove it first`, { details: { name } });
  }
  return put(tx, name, checked, "api", old);
}

/** A definition in code: made, changed, or left as it is. */
export async function upsertSchedule(tx: Tx, name: string, checked: CheckedSchedule): Promise<ScheduleRow> {
  const old = await readSchedule(tx, name);
  if (old !== undefined && old.removed_at === null && old.source === "code" && isSame(old, checked)) return old;
  return put(tx, name, checked, "code", old);
}

export async function editSchedule(tx: Tx, name: string, checked: CheckedSchedule): Promise<ScheduleRow> {
  const old = await findSchedule(tx, name);
  refuseCode(old, "edit");
  return put(tx, name, checked, "api", old);
}

export function refuseCode({ name, source }: ScheduleRow, verb: string): void {
  if (source !== "code") return;
  throw new DaybookError("conflict", `schedule "${name}" is defined in code: ${verb} it there, or pause it here`, {
    details: { name },
  });
}

const timingKeys = ["kind", "expression", "zone", "gap", "overlap", "starts_at", "ends_at", "anchor_at"] as const;
const otherKeys = [
  ...(["target", "target_name", "job", "missed", "max_lateness_ms", "concurrency", "jitter_ms"] as const),
  ...(["max_fires", "pause_after"] as const),
];

function isSame(old: ScheduleRow, checked: CheckedSchedule): boolean {
  return [...timingKeys, ...otherKeys].every((key) => old[key] === checked[key]);
}

async function put(
  tx: Tx,
  name: string,
  checked: CheckedSchedule,
  source: ScheduleSource,
  old: ScheduleRow | undefined,
): Promise<ScheduleRow> {
  await refuseMissingTemplate(tx, checked);
  const { timing, unknown: _unknown, ...settings } = checked;
  const begun = old === undefined || old.removed_at !== null;
  // One that was over begins anew with the edit that lets it go on.
  const over = !begun && old.next_at === null && old.paused_at === null;
  const moved = begun || over || timingKeys.some((key) => old[key] !== checked[key]);
  if (moved && !begun && !over) await passBy(tx, old);
  const base: ScheduleRow = old ?? {
    ...{ seq: 0, tenant_id: tx.tenant, id: tx.ids(), name, source, ...settings, fires: 0, failures: 0 },
    ...{ cursor_at: tx.now, next_at: null, last_fired_at: null, paused_at: null, paused_note: null },
    ...{ removed_at: null, restored: 0, revision: 0, created_at: tx.now, updated_at: tx.now },
  };
  const row: ScheduleRow = {
    ...base,
    ...settings,
    ...(begun ? { fires: 0, failures: 0, paused_at: null, paused_note: null, removed_at: null } : {}),
    ...{ source, updated_at: tx.now, revision: base.revision + 1 },
    cursor_at: moved ? Math.max(base.cursor_at, tx.now) : base.cursor_at,
  };
  const next: ScheduleRow = { ...row, next_at: nextFireAt(row, timing) };
  await save(tx, next, old === undefined);
  return next;
}

// What was due by the old timing and is not decided yet belongs to neither from now on; why should still have an answer.
async function passBy(tx: Tx, old: ScheduleRow): Promise<void> {
  const timing = readTiming(old);
  if (!("unreadable" in timing)) await insertSkips(tx, old, timing, { until: tx.now, note: "it was edited" });
}

async function save(tx: Tx, row: ScheduleRow, isNew: boolean): Promise<void> {
  tx.wake(schedulesChannel);
  if (isNew) {
    const made =
      await tx.run(sql`insert into schedule (tenant_id, id, name, source, kind, expression, zone, gap, overlap, starts_at,
        ends_at, anchor_at, target, target_name, job, missed, max_lateness_ms, concurrency, jitter_ms, max_fires,
        pause_after, cursor_at, next_at, created_at, updated_at, revision)
      values (${row.tenant_id}, ${row.id}, ${row.name}, ${row.source}, ${row.kind}, ${row.expression}, ${row.zone},
        ${row.gap}, ${row.overlap}, ${row.starts_at}, ${row.ends_at}, ${row.anchor_at}, ${row.target},
        ${row.target_name}, ${row.job}, ${row.missed}, ${row.max_lateness_ms}, ${row.concurrency}, ${row.jitter_ms},
        ${row.max_fires}, ${row.pause_after}, ${row.cursor_at}, ${row.next_at}, ${row.created_at}, ${row.updated_at},
        ${row.revision}) on conflict do nothing`);
    if (made === 1) return;
    const { name } = row;
    throw new DaybookError("conflict", `schedule "${name}" was made by another at this moment: look again`, {
      details: { name },
    });
  }
  await tx.run(sql`update schedule set source = ${row.source}, kind = ${row.kind}, expression = ${row.expression},
      zone = ${row.zone}, gap = ${row.gap}, overlap = ${row.overlap}, starts_at = ${row.starts_at},
      ends_at = ${row.ends_at}, anchor_at = ${row.anchor_at}, target = ${row.target},
      target_name = ${row.target_name}, job = ${row.job}, missed = ${row.missed},
      max_lateness_ms = ${row.max_lateness_ms}, concurrency = ${row.concurrency}, jitter_ms = ${row.jitter_ms},
      max_fires = ${row.max_fires}, pause_after = ${row.pause_after}, fires = ${row.fires},
      failures = ${row.failures}, cursor_at = ${row.cursor_at}, next_at = ${row.next_at},
      paused_at = ${row.paused_at}, paused_note = ${row.paused_note}, removed_at = ${row.removed_at},
      restored = ${row.restored}, revision = ${row.revision}, updated_at = ${row.updated_at}
    where seq = ${row.seq}`);
}

export async function pauseSchedule(tx: Tx, name: string, note: string | null): Promise<void> {
  const row = await findSchedule(tx, name);
  await save(tx, { ...row, paused_at: row.paused_at ?? tx.now, paused_note: note, next_at: null }, false);
}

/** What was due while it was paused is one decision, and is not made up for. */
export async function resumeSchedule(tx: Tx, name: string): Promise<void> {
  const row = await findSchedule(tx, name);
  if (row.paused_at === null) return;
  await insertSkips(tx, row, timingOf(row), { until: tx.now, note: "it was paused" });
  const next = { ...row, paused_at: null, paused_note: null, failures: 0, cursor_at: Math.max(row.cursor_at, tx.now) };
  await save(tx, { ...next, next_at: nextFireAt(next) }, false);
}

/** Its decisions stay, and what it fired runs on. */
export async function removeSchedule(tx: Tx, name: string): Promise<void> {
  const row = await findSchedule(tx, name);
  refuseCode(row, "remove");
  await save(tx, { ...row, removed_at: tx.now, next_at: null, paused_at: null, paused_note: null }, false);
}
