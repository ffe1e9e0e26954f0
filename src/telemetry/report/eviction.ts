// What retention has removed, day by day.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";

export type Eviction = {
  /** The day on which it was removed. */
  readonly at: number;
  readonly what: "run" | "log" | "rollup";
  /** Because it was too old, or because there was too much. */
  readonly reason: "age" | "size";
  readonly removed: number;
  /** When the newest of it was. */
  readonly until: number;
};

type Row = { day_at: number; what: Eviction["what"]; reason: Eviction["reason"]; removed: number; until_at: number };

export async function readEvictions(store: Store, tenant: string, limit: number): Promise<Eviction[]> {
  const rows = await store.readHeavy<Row>(sql`select day_at, what, reason, removed, until_at from daybook_run_eviction
    where tenant_id = ${tenant} order by day_at desc, what, reason limit ${limit}`);
  return rows.map(({ day_at: at, what, reason, removed, until_at: until }) => ({ at, what, reason, removed, until }));
}
