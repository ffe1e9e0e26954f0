// The zone of the book: on its clock the schedules go that name none. A program gives it to open(), and it is kept, so that what is
// made from a shell or by another program goes by the same clock. The last program that gave one wins, as with definitions.
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Store } from "../storage/store.ts";

export async function readBookZone(read: (statement: Sql) => Awaitable<{ zone: string }[]>): Promise<string> {
  const [row] = await read(sql`select zone from daybook_schedule_zone`);
  return row?.zone ?? "UTC";
}

/** Schedules that are in the book keep the zone that they were written with; those of code are written anew by their program. */
export async function writeBookZone(store: Store, zone: string): Promise<void> {
  if ((await readBookZone((statement) => store.read(statement))) === zone) return;
  await store.write(async (tx) => {
    await tx.run(sql`insert into daybook_schedule_zone (one, zone, changed_at) values (1, ${zone}, ${tx.now})
      on conflict (one) do update set zone = excluded.zone, changed_at = excluded.changed_at`);
  });
}
