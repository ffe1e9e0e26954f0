// How many jobs of each queue have not ended, by status. Each count walks an index that holds nothing else.
import { rawSql, sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";

export type OpenCount = {
  readonly queue: string;
  readonly status: "queued" | "waiting" | "running";
  readonly jobs: number;
};

export async function readOpenCounts(store: Store, tenant: string): Promise<OpenCount[]> {
  const of = (status: OpenCount["status"]) =>
    store.readHeavy<{ queue: string; jobs: number }>(
      // Literals, because a partial index is only used when the planner sees its condition.
      sql`select lane.queue, count(*) as jobs from daybook_lane lane join daybook_line line on line.lane_seq = lane.seq
        where lane.tenant_id = ${tenant} and line.status = ${rawSql(`'${status}'`)}
        group by lane.queue order by lane.queue`,
    );
  const statuses = ["queued", "waiting", "running"] as const;
  const found = await Promise.all(statuses.map(of));
  return statuses.flatMap((status, index) => (found[index] ?? []).map((row) => ({ ...row, status })));
}
