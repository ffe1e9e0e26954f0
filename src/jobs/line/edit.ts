// Changes the params or the time of a job that has not started. Its place in line stays; its limits follow its params.
import { conflict, invalid, notFound } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { refusal } from "../cancel.ts";
import { validateParams, type AnyJob } from "../define.ts";
import { passOn } from "../let-in.ts";
import { jobNow, jobsChannel, type JobRow, type JobStatus } from "../job.ts";
import { limitsOf as limitsOfRow } from "../limit.ts";
import { limitsOf, type Prepared } from "../prepare.ts";
import { lockLine, type JobKey } from "../lock-order.ts";
import { restand, retie, tie } from "../state.ts";
import { stands } from "./move.ts";

export type Edited = { readonly id: string; readonly name: string; readonly status: JobStatus };

/** Params that fit the definition, and the limits that follow from them; undefined when nobody here knows. */
export type NewParams = {
  readonly params: string;
  readonly limits: Pick<Prepared, "limits" | "limit_key"> | undefined;
};

export async function nameOfJob(tx: Tx, id: string): Promise<string> {
  return (await jobOf(tx, { tenant: tx.tenant, id })).name;
}

async function jobOf(tx: Tx, { tenant, id }: JobKey): Promise<JobRow> {
  const job = await tx.get<JobRow>(sql`select * from ${jobNow} where job.tenant_id = ${tenant} and job.id = ${id}`);
  if (job === undefined) throw notFound(`there is no job ${id}`, { id });
  return job;
}

export async function prepareParams(definition: AnyJob | undefined, input: unknown): Promise<NewParams> {
  definition?.builtIn?.byHand?.();
  const given = input ?? {};
  const valid = definition === undefined ? given : await validateParams(definition, given);
  const known = definition?.byName?.countable === false ? undefined : definition;
  return { params: toJson(given, { what: "params" }), limits: known && limitsOf(known, valid) };
}

export async function editJob(tx: Tx, id: string, { params, limits }: NewParams): Promise<Edited> {
  await lockLine(tx, { tenant: tx.tenant, id });
  const job = await jobOf(tx, { tenant: tx.tenant, id });
  if (!stands(job)) throw await refusal(tx, id, "edited");
  if (job.retry_of !== null) {
    const why = `job ${id} is a retry (attempt ${job.attempt}) and goes on with the params that its chain began with`;
    throw conflict(`${why}: cancel it and enqueue a new job`, { id, attempt: job.attempt });
  }
  const next = limits ?? keptLimits(job);
  const otherLimits = next.limits !== job.limits || next.limit_key !== job.limit_key;
  // What it was parked for was a limit of its old params: in line again, it meets those of the new ones.
  const freed = otherLimits && job.waits_key !== null && (job.waits_for === "key" || job.waits_for === "time");
  const status = freed ? "queued" : job.status;
  const stood = !freed || (await restand(tx, job.seq, { waitsFor: null, availableAt: tx.now }));
  if (!stood) throw await refusal(tx, id, "edited");
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
  const why = `the limits of job ${job.id} follow from its params, and this book does not know ${job.name}`;
  const details = { id: job.id, name: job.name };
  throw invalid(`${why}: edit it in a program that lists it in "use"`, { details });
}

type Reschedule = {
  /** A retry may be given another time, too. */
  readonly retries?: boolean;
  /** How long it is to wait from now on, when that was asked for and not a moment. */
  readonly delayMs?: number | null;
};

/** Another time for a job that has not started; it keeps its place in line for when it is due. False when it has started, or ended,
 *  or waits for something that time does not remove. */
export async function rescheduleJob(
  tx: Tx,
  of: JobKey,
  at: number,
  { retries = false, delayMs = null }: Reschedule = {},
): Promise<boolean> {
  await lockLine(tx, of);
  const row = await tx.get<JobRow>(sql`select * from ${jobNow}
    where job.tenant_id = ${of.tenant} and job.id = ${of.id}`);
  if (row === undefined || (row.retry_of !== null && !retries)) return false;
  if (!stands(row) || !removedByTime.has(row.waits_for)) return false;
  const waits = at > tx.now;
  const availableAt = Math.max(at, tx.now);
  if (!(await restand(tx, row.seq, { waitsFor: waits ? "time" : null, availableAt }))) return false;
  const dueAt = waits ? availableAt : null;
  await tx.run(
    sql`update daybook_job set due_at = ${dueAt}, delay_ms = ${waits ? delayMs : null} where seq = ${row.seq}`,
  );
  // It may have been in line for a permit, which is the next one's now.
  if (waits) await passOn(tx, [{ ...row, waits_for: "time", waits_key: null }]);
  tx.wake(jobsChannel);
  return true;
}

/** Nothing, where it stands in line, or what waiting for another time removes. */
const removedByTime: ReadonlySet<string | null> = new Set([null, "time", "key", "host", "order", "alone"]);
