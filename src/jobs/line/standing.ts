// A job that has a place in line: it waits or is queued.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { refusal } from "../cancel.ts";
import { jobNow, type JobRow } from "../job.ts";
import { lockLine } from "../lock-order.ts";
import { holdLines } from "./neighbours.ts";

export type Standing = Pick<JobRow, "seq" | "id" | "lane_seq" | "status" | "priority"> & {
  readonly position: number;
  readonly queue: string;
};

/** The job, with its row and its line held until the transaction ends; refused when it has left the line. */
export async function holdPlaceOf(tx: Tx, id: string, verb: string): Promise<Standing> {
  // The lane of a job never changes, so it can be read before it is held.
  const found = await tx.get<{ lane_seq: number }>(
    sql`select lane_seq from daybook_job where tenant_id = ${tx.tenant} and id = ${id}`,
  );
  if (found !== undefined) await holdLines(tx, [found.lane_seq]);
  // On PostgreSQL whoever is just claiming it is waited for, so what is read here stays true.
  await lockLine(tx, { tenant: tx.tenant, id });
  const job = await findPlaced(tx, id);
  if (job !== undefined && stands(job)) return job;
  throw await refusal(tx, id, verb);
}

export async function findPlaced(tx: Tx, id: string): Promise<Standing | undefined> {
  return tx.get<Standing>(sql`select job.seq, job.id, job.lane_seq, job.status, job.priority, job.position,
      (select queue from daybook_lane lane where lane.seq = job.lane_seq) as queue
    from ${jobNow} where job.tenant_id = ${tx.tenant} and job.id = ${id}`);
}

export function stands({ status }: Pick<Standing, "status">): boolean {
  return status === "waiting" || status === "queued";
}
