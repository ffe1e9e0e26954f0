// How many jobs of each queue have not ended, by status. Each count walks an index that holds nothing else.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";

export type OpenCount = {
  readonly queue: string;
  readonly status: "queued" | "waiting" | "running";
  readonly jobs: number;
};

export async function readOpenCounts(store: Store, tenant: string): Promise<OpenCount[]> {
  const of = (status: OpenCount["status"]) =>
    store.readHeavy<{ queue: string; jobs: number }>(
      status === "queued"
        ? sql`select lane.queue, count(*) as jobs from lane join job on job.lane_seq = lane.seq
            where lane.tenant_id = ${tenant} and job.status = 'queued' group by lane.queue order by lane.queue`
        : status === "waiting"
          ? sql`select lane.queue, count(*) as jobs from lane join job on job.lane_seq = lane.seq
              where lane.tenant_id = ${tenant} and job.status = 'waiting' group by lane.queue order by lane.queue`
          : sql`select lane.queue, count(*) as jobs from job join lane on lane.seq = job.lane_seq
              where lane.tenant_id = ${tenant} and job.status = 'running' group by lane.queue order by lane.queue`,
    );
  const statuses = ["queued", "waiting", "running"] as const;
  const found = await Promise.all(statuses.map(of));
  return statuses.flatMap((status, index) => (found[index] ?? []).map((row) => ({ ...row, status })));
}
