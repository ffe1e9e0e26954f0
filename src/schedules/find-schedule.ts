// One schedule by its name, for whoever changes it, and what to say when there is none.
import type { DaybookError } from "../core/error.ts";
import { noSuch } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import type { ScheduleRow } from "./schedule.ts";

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
