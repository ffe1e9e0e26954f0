// The end of a job that a schedule made: failures in a row may pause the schedule, and one that waits for its turn may go.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { JobEnded } from "../jobs/hooks.ts";
import type { JobRow } from "../jobs/job.ts";
import { release } from "../jobs/park.ts";
import { schedulesChannel, type ScheduleRow } from "./schedule.ts";
import { forUpdate } from "../storage/word.ts";

type Row = Pick<ScheduleRow, "seq" | "id" | "failures" | "pause_after" | "concurrency" | "paused_at">;

export async function scheduledJobEnded(tx: Tx, job: JobRow, { status, retriedBy }: JobEnded): Promise<void> {
  if (retriedBy !== null) return;
  const row = await tx.get<Row>(sql`select seq, id, failures, pause_after, concurrency, paused_at from schedule
    where seq = ${job.kind_seq} ${forUpdate}`);
  if (row === undefined) return;
  if (row.concurrency === "queue") {
    await release(tx, { tenant: job.tenant_id, waitsFor: "order", key: row.id }, 1);
  }
  if (row.pause_after === null || (status !== "failed" && status !== "completed")) return;
  const failures = status === "failed" ? row.failures + 1 : 0;
  const pauses = row.paused_at === null && failures >= row.pause_after;
  if (failures === row.failures) return;
  await tx.run(sql`update schedule set failures = ${failures} where seq = ${row.seq}`);
  if (!pauses) return;
  await tx.run(sql`update schedule set paused_at = ${tx.now}, next_at = null,
      paused_note = ${`${failures} jobs in a row failed, the last one was ${job.id}`} where seq = ${row.seq}`);
  tx.wake(schedulesChannel);
}
