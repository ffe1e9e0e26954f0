// Gives a schedule another name. It stays the same schedule, with its cursor, decisions and jobs.
import { conflict, DaybookError } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { isoTime, timeMs } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, assigned, forUpdate } from "../storage/word.ts";
import type { CheckedSchedule } from "./options.ts";
import { findSchedule, type ScheduleRow } from "./schedule.ts";
import type { StoredTarget } from "./target.ts";
import { restoreTiming } from "./timing/timing.ts";
import { putCode } from "./write-schedule.ts";

/** `whole`: the caller speaks for the whole book, so it may rename what all tenants have. */
export async function renameSchedule(tx: Tx, name: string, to: string, whole: boolean): Promise<ScheduleRow> {
  checkName(name, "schedule name");
  checkName(to, "the new name");
  const theirs = sql`or tenant_id in (select tenant_id from daybook_schedule
    where name = ${name} and for_all = 1 and removed_at is null)`;
  // All in one order, so that two renames never wait for each other.
  const rows = await tx.all<ScheduleRow>(sql`select * from daybook_schedule
    where name ${anyOf("text", [name, to])} and (tenant_id = ${tx.tenant} ${whole ? theirs : sql``})
    order by seq ${forUpdate}`);
  const named = rows.filter((each) => each.name === name && each.removed_at === null);
  // The caller's tenant need not have what a program gives to all the tenants that it knows.
  const row = named.find((each) => each.tenant_id === tx.tenant) ?? named[0] ?? (await findSchedule(tx, name));
  refuseOfApp(row);
  if (row.for_all === 1 && !whole) {
    const advice = "call book.schedules.rename on the book that open() returned (in a shell: name no tenant)";
    throw new DaybookError("forbidden", `schedule "${name}" is for all tenants, so all get the new name: ${advice}`);
  }
  if (name === to) return row;
  const all = row.for_all === 1 ? named.filter((each) => each.for_all === 1) : [row];
  const held = new Map(rows.filter((each) => each.name === to).map((each) => [each.tenant_id, each]));
  let renamed = row;
  for (const each of all) {
    const done = await renameOne(tx, each, to, held.get(each.tenant_id));
    if (each === row) renamed = done;
  }
  return renamed;
}

function appOf({ job }: ScheduleRow): string | undefined {
  return (JSON.parse(job) as StoredTarget).prepared.app ?? undefined;
}

function refuseOfApp(row: ScheduleRow): void {
  const { name } = row;
  const app = appOf(row);
  if (app === undefined) return;
  throw conflict(`schedule "${name}" belongs to app "${app}" and is known to it by its name: rename it there`, {
    name,
  });
}

/** `held` is the row that has the new name. A program that calls the schedule so may be there before the rename, and has made a row that
 *  has decided nothing: it makes way, and what it says of the schedule holds. */
async function renameOne(tx: Tx, row: ScheduleRow, to: string, held: ScheduleRow | undefined): Promise<ScheduleRow> {
  const fresh = held !== undefined && (await isFresh(tx, held)) ? held : undefined;
  if (fresh !== undefined) await tx.run(sql`delete from daybook_schedule where seq = ${fresh.seq}`);
  else if (held !== undefined) {
    if (held.removed_at === null) throw exists(tx, held);
    // What was removed keeps its decisions, under a name that says what it was.
    await tx.run(
      sql`update daybook_schedule set name = ${`${to}, removed ${isoTime(held.removed_at)}`} where seq = ${held.seq}`,
    );
  }
  const renamed = { name: to, updated_at: tx.now, revision: row.revision + 1 };
  await tx.run(sql`update daybook_schedule set ${assigned(renamed)} where seq = ${row.seq}`);
  const next = { ...row, ...renamed };
  return fresh === undefined ? next : putCode(tx, to, definitionOf(fresh), next);
}

/** Whether code made it, and it has decided no slot yet. */
async function isFresh(tx: Tx, row: ScheduleRow): Promise<boolean> {
  if (row.source !== "code" || row.removed_at !== null || row.pruned_until !== null || row.fires > 0) return false;
  if (row.last_fired_at !== null || appOf(row) !== undefined) return false;
  const decided = sql`select 1 as one from daybook_decision
    where tenant_id = ${row.tenant_id} and schedule_seq = ${row.seq} limit 1`;
  return (await tx.get<{ one: number }>(decided)) === undefined;
}

/** What the program that made the row says of the schedule. */
function definitionOf(row: ScheduleRow): CheckedSchedule {
  const { kind, expression, anchor_at: anchor, target, target_name, job, for_all } = row;
  const { missed, max_lateness_ms, overlap, jitter_ms, max_fires, pause_after } = row;
  const timing = restoreTiming(row);
  const inMs = kind === "once" && anchor !== null ? timeMs(expression, "at") - anchor : null;
  const policies = { missed, max_lateness_ms, overlap, jitter_ms, max_fires, pause_after };
  const said = { target, target_name, job, for_all, unknown: false, warning: null };
  return { ...timing.stored, timing, inMs, ...policies, ...said };
}

function exists(tx: Tx, { name, tenant_id: of, source }: ScheduleRow): DaybookError {
  const whose = of === tx.tenant ? "" : ` of tenant "${of}"`;
  const advice =
    source === "code"
      ? "it is defined in code and has decided slots of its own: give another name, or keep it and pause the old one"
      : "remove it first, or give another name";
  return conflict(`schedule "${name}"${whose} exists: ${advice}`, { name });
}
