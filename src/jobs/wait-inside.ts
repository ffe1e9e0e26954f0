// A handler may wait for other jobs, and for that they must be able to run meanwhile. Two waits can never end, and are
// refused: for itself, and, in a run that is alone in its session after two losses, for what only this session could run.
import { AsyncLocalStorage } from "node:async_hooks";
import { DaybookError, invalid } from "../core/error.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { currentCause } from "../telemetry/cause.ts";

type AloneRun = { readonly sessionSeq: number; over: boolean };

const aloneRuns = new AsyncLocalStorage<AloneRun>();

/** Runs the handler of a job that is alone in its session. */
export async function runAlone<T>(sessionSeq: number, handler: () => T): Promise<Awaited<T>> {
  const run: AloneRun = { sessionSeq, over: false };
  try {
    return await aloneRuns.run(run, handler);
  } finally {
    run.over = true;
  }
}

/** `which` are the jobs that are waited for, open ones and others. */
export async function refuseToBlock(
  store: Store,
  { tenant, what, which }: { readonly tenant: string; readonly what: string; readonly which: Sql },
): Promise<void> {
  const cause = currentCause();
  if (cause === undefined) return;
  const [itself] = await store.read<{ id: string }>(sql`select job.id
    from daybook_job job join daybook_line line on line.seq = job.seq
    where ${which} and job.tenant_id = ${tenant} and line.run_id = ${cause.runId}`);
  if (itself !== undefined) {
    throw invalid(`job ${itself.id} waits for ${what}, which cannot end before itself: wait for it from outside`);
  }
  const alone = aloneRuns.getStore();
  if (alone === undefined || alone.over) return;
  const [blocked] = await store.read<{
    id: string;
    name: string;
    queue: string;
  }>(sql`select job.id, job.name, lane.queue
    from daybook_job job join daybook_line line on line.seq = job.seq join daybook_lane lane on lane.seq = job.lane_seq
    where ${which} and job.tenant_id = ${tenant} and job.origin <> 'direct'
      and (line.session_seq is null or line.session_seq = ${alone.sessionSeq})
      and not exists (select 1 from daybook_session_host host join daybook_session session on session.seq = host.session_seq
        where session.status = 'running' and session.seq <> ${alone.sessionSeq} and host.name = job.name
          and (host.queue is null or host.queue = lane.queue)) limit 1`);
  if (blocked === undefined) return;
  const { id, name, queue } = blocked;
  throw new DaybookError(
    "conflict",
    `this run is alone in its process after two losses, and nobody else runs job ${id} ("${name}" in queue "${queue}"), so ` +
      `${what} would never end: start another process that runs it; the next attempt is not alone`,
    { details: { id, name, queue } },
  );
}
