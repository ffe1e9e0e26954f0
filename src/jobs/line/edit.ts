// Changes the params or the time of a job that has not started. Its place in line stays; its limits follow its params.
import { DaybookError, conflict, notFound } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { refusal } from "../cancel.ts";
import { validateParams, type AnyJob } from "../define.ts";
import { passOn } from "../let-in.ts";
import { jobNow, jobsChannel, type JobRow, type JobStatus } from "../job.ts";
import { limitsOf as limitsOfRow } from "../limit.ts";
import { limitsOf, type Prepared } from "../prepare.ts";
import { lockLine } from "../lock-order.ts";
import { restand, retie, tie } from "../state.ts";
import { stands } from "./move.ts";

export type Edited = { readonly id: string; readonly name: string; readonly status: JobStatus };

/** Params that fit the definition, and the limits that follow from them; undefined when nobody here knows. */
export type NewParams = {
  readonly params: string;
  readonly limits: Pick<Prepared, "limits" | "limit_key"> | undefined;
};

export async function nameOfJob(tx: Tx, id: string): Promise<string> {
  const job = await tx.get<{ name: string }>(
    sql`select name from daybook_job where tenant_id = ${tx.tenant} and id = ${id}`,
  );
  if (job === undefined) throw notFound(`there is no job ${id}`, { id });
  return job.name;
}

export async function prepareParams(definition: AnyJob | undefined, input: unknown): Promise<NewParams> {
  definition?.builtIn?.byHand?.();
  const given = input ?? {};
  if (definition === undefined) return { params: toJson(given, { what: "params" }), limits: undefined };
  const valid = await validateParams(definition, given);
  const limits = definition.byName?.countable === false ? undefined : limitsOf(definition, valid);
  return { params: toJson(given, { what: "params" }), limits };
}

export async function editJob(tx: Tx, id: string, { params, limits }: NewParams): Promise<Edited> {
  await lockLine(tx, { tenant: tx.tenant, id });
  const job = await tx.get<JobRow>(sql`select * from ${jobNow} where job.tenant_id = ${tx.tenant} and job.id = ${id}`);
  if (job === undefined || !stands(job)) throw await refusal(tx, id, "edited");
  if (job.retry_of !== null) {
    throw conflict(
      `job ${id} is a retry (attempt ${job.attempt}) and goes on with the params that its chain began with: ` +
        "cancel it and enqueue a new job",
      { id, attempt: job.attempt },
    );
  }
  const next = limits ?? keptLimits(job);
  const otherLimits = next.limits !== job.limits || next.limit_key !== job.limit_key;
  // What it was parked for was a limit of its old params: in line again, it meets those of the new ones.
  const freed = otherLimits && job.waits_key !== null && (job.waits_for === "key" || job.waits_for === "time");
  const status = freed ? "queued" : job.status;
  if (freed && !(await restand(tx, job.seq, { waitsFor: null, availableAt: tx.now })))
    throw await refusal(tx, id, "edited");
  await tx.run(sql`update daybook_job set params = ${params}, limits = ${next.limits}, limit_key = ${next.limit_key}
    where seq = ${job.seq}`);
  if (otherLimits) await retie(tx, job.seq, tie.limit, next.limits !== null);
  if (otherLimits) await passOn(tx, [job]);
  if (freed) tx.wake(jobsChannel);
  return { id, name: job.name, status };
}

// Without the definition nobody can say which key the new params would have.
function keptLimits(job: JobRow): Pick<Prepared, "limits" | "limit_key"> {
  const { rate } = limitsOfRow(job);
  if (job.limit_key === null && (rate === undefined || rate.key === `${job.name}\n*`)) {
    return { limits: job.limits, limit_key: job.limit_key };
  }
  throw new DaybookError(
    "invalid",
    `the limits of job ${job.id} follow from its params, and this book does not know ${job.name}: ` +
      'edit it in a program that lists it in "use"',
    { details: { id: job.id, name: job.name } },
  );
}

/** Another time for a job that has not started; it keeps its place in line for when it is due. False when it has started, or ended,
 *  or waits for something that time does not remove. */
export async function rescheduleJob(
  tx: Tx,
  of: { readonly tenant: string; readonly id: string },
  at: number,
  { retries = false } = {},
): Promise<boolean> {
  await lockLine(tx, of);
  const row = await tx.get<JobRow>(
    sql`select * from ${jobNow} where job.tenant_id = ${of.tenant} and job.id = ${of.id}`,
  );
  if (row === undefined || (row.retry_of !== null && !retries) || !isFree(row)) return false;
  const waits = at > tx.now;
  const availableAt = Math.max(at, tx.now);
  if (!(await restand(tx, row.seq, { waitsFor: waits ? "time" : null, availableAt }))) return false;
  await tx.run(sql`update daybook_job set due_at = ${availableAt}, delay_ms = null where seq = ${row.seq}`);
  // It may have been in line for a permit, which is the next one's now.
  if (waits) await passOn(tx, [{ ...row, waits_for: "time", waits_key: null }]);
  tx.wake(jobsChannel);
  return true;
}

const removedByTime: ReadonlySet<string | null> = new Set(["time", "key", "host", "order", "alone"]);

function isFree({ status, waits_for }: JobRow): boolean {
  return status === "queued" || (status === "waiting" && removedByTime.has(waits_for));
}
