// Which chain an event belongs to: one that is published while another is listened to is caused by it. Also through
// jobs: a listener that enqueues a job which publishes what the listener hears is the same circle.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { heardOf } from "../jobs/job.ts";
import type { Cause } from "../core/cause.ts";
import { deliveryKind } from "./event.ts";

/** The event that caused a new one; undefined when none did. */
export type Parent = { readonly id: string; readonly rootId: string; readonly depth: number };

export async function parentOf(tx: Tx, tenant: string, cause: Cause | undefined): Promise<Parent | undefined> {
  if (cause === undefined) return undefined;
  if (cause.event !== undefined) return cause.event;
  if (cause.parentRunId === null || cause.parentRunId === undefined) return undefined;
  return eventBehind(tx, tenant, cause.parentRunId);
}

/** Two listeners that feed each other end here, instead of filling the disk. */
export function refuseTooDeep(topic: string, parent: Parent): void {
  if (parent.depth < limits.chainDepthMax) return;
  throw invalid(
    `"${topic}" would be number ${parent.depth + 1} in a chain of events that cause each other, after the limit of ` +
      `${limits.chainDepthMax}: it began with event ${parent.rootId}, and event ${parent.id} is heard now. ` +
      "Is a listener publishing what it listens to?",
    { details: { topic, rootEventId: parent.rootId, parentEventId: parent.id, chainDepth: parent.depth + 1 } },
  );
}

type Step = { kind: string | null; kind_seq: number | null; cause_run_id: string | null; about: string | null };

// From run to the run that made its job, until one of them was listening. A longer way is not followed: what runs for
// weeks by enqueueing itself has no beginning worth finding.
async function eventBehind(tx: Tx, tenant: string, runId: string): Promise<Parent | undefined> {
  let at: string | null = runId;
  for (let steps = 0; at !== null && steps < limits.chainDepthMax; steps++) {
    const found: Step | undefined = await jobOfRun(tx, tenant, at);
    if (found === undefined) return undefined;
    const { event } = heardOf(found);
    if (event !== undefined) return event;
    if (found.kind === deliveryKind) {
      return tx.get<Parent>(sql`select id, root_event_id as "rootId", chain_depth as depth from daybook_event
        where seq = ${found.kind_seq}`);
    }
    at = found.cause_run_id;
  }
  return undefined;
}

// One statement, because the run may end meanwhile. One that goes on is its job's row; there are never more of these than
// workers have hands.
async function jobOfRun(tx: Tx, tenant: string, runId: string): Promise<Step | undefined> {
  return tx.get<Step>(sql`select job.kind, job.kind_seq, job.cause_run_id, job.about
      from daybook_run run join daybook_job job on job.seq = run.job_seq
      where run.tenant_id = ${tenant} and run.id = ${runId}
    union all select job.kind, job.kind_seq, job.cause_run_id, job.about
      from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'running' and job.tenant_id = ${tenant} and line.run_id = ${runId}`);
}
