// After its process was lost a job runs alone in its session, and its start is on disk before it begins: if the process
// is lost again, only this job can be to blame. The start of a job that may not be lost at all is written too: it is
// given up once it has begun, and costs nothing before that.
import { sql } from "../storage/sql.ts";
import type { ClaimedJob } from "./claim.ts";
import { writeFor, type Engine } from "./engine.ts";
import { begun } from "./outcome.ts";

export function startsOnDisk(job: Pick<ClaimedJob, "alone" | "losses_max">): boolean {
  return job.alone !== 0 || job.losses_max === 0;
}

/** False when the job is no longer this session's, or that could not be found out: then it must not begin. */
export async function begin(engine: Engine, job: ClaimedJob): Promise<boolean> {
  try {
    const written = await writeFor(engine, job.tenant_id, (tx) =>
      tx.run(sql`update job set alone = ${begun}
        where seq = ${job.seq} and run_id = ${job.run_id} and status = 'running'`),
    );
    return written === 1;
  } catch {
    return false; // it goes back into the queue
  }
}
