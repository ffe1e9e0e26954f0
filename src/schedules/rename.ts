// Gives a schedule another name. It stays the same schedule, with its cursor, decisions and jobs.
import { conflict, DaybookError } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { isoTime } from "../core/time.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, assigned, forUpdate } from "../storage/word.ts";
import { findSchedule, type ScheduleRow } from "./schedule.ts";
import type { StoredTarget } from "./target.ts";

/** `whole`: the caller speaks for the whole book, so it may rename what all tenants have. */
export async function renameSchedule(tx: Tx, name: string, to: string, whole: boolean): Promise<ScheduleRow> {
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

function refuseOfApp({ name, job }: ScheduleRow): void {
  const { app } = (JSON.parse(job) as StoredTarget).prepared;
  if (app === undefined) return;
  throw conflict(`schedule "${name}" belongs to app "${app}" and is known to it by its name: rename it there`, {
    name,
  });
}

/** `held` is the row that has the new name. */
async function renameOne(tx: Tx, row: ScheduleRow, to: string, held: ScheduleRow | undefined): Promise<ScheduleRow> {
  if (held !== undefined) {
    if (held.removed_at === null) throw exists(tx, held);
    // What was removed keeps its decisions, under a name that says what it was.
    await tx.run(
      sql`update daybook_schedule set name = ${`${to}, removed ${isoTime(held.removed_at)}`} where seq = ${held.seq}`,
    );
  }
  const renamed = { name: to, updated_at: tx.now, revision: row.revision + 1 };
  await tx.run(sql`update daybook_schedule set ${assigned(renamed)} where seq = ${row.seq}`);
  return { ...row, ...renamed };
}

function exists(tx: Tx, { name, tenant_id: of }: ScheduleRow): DaybookError {
  const whose = of === tx.tenant ? "" : ` of tenant "${of}"`;
  return conflict(`schedule "${name}"${whose} exists: remove it first, or give another name`, { name });
}
