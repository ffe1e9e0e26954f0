// What may be changed of a job that has not started: its params and its time, for which its place in line stays and its limits
// follow its params; and its place. The line is an order, so whatever place is asked for can be had, however often.
import { conflict, invalid, notFound } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { refusal } from "../settle/cancel.ts";
import { validateParams, checkPriority, limitsOf, type AnyJob, type Prepared } from "../define.ts";
import { passOn } from "../wait/park.ts";
import { findJobRow, jobsChannel, seqOf, stands, type JobKey, type JobRow, type Standing } from "../job.ts";
import { limitsOf as limitsOfRow } from "../claim/limit.ts";
import { holdLines, lockLines } from "../lock-order.ts";
import { restand, retie, tie } from "../state.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { anyOf } from "../../storage/word.ts";
import { gapAt, renumber, roomIn, type Line, type Where } from "./room.ts";

export type Edited = Readonly<Pick<JobRow, "id" | "name" | "status">>;

/** Params that fit the definition, and the limits that follow from them; undefined when this process does not know them. */
export type NewParams = {
  readonly params: string;
  readonly limits: Pick<Prepared, "limits" | "limit_key"> | undefined;
};

export async function prepareParams(definition: AnyJob | undefined, input: unknown): Promise<NewParams> {
  definition?.builtIn?.byHand?.();
  const given = input ?? {};
  const valid = definition === undefined ? given : await validateParams(definition, given);
  const known = definition?.byName?.countable === false ? undefined : definition;
  return { params: toJson(given, { what: "params" }), limits: known && limitsOf(known, valid) };
}

export async function editJob(tx: Tx, id: string, { params, limits }: NewParams): Promise<Edited> {
  await lockLines(tx, seqOf({ tenant: tx.tenant, id }));
  const job = await findJobRow(tx, { tenant: tx.tenant, id });
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

// Without the definition it is not known which key the new params would have.
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
export async function rescheduleJob(tx: Tx, of: JobKey, at: number, how: Reschedule = {}): Promise<boolean> {
  const { retries = false, delayMs = null } = how;
  await lockLines(tx, seqOf(of));
  const row = await findJobRow(tx, of);
  if (!stands(row) || (row.retry_of !== null && !retries) || !removedByTime.has(row.waits_for)) return false;
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

/** Where a job is moved to: an end of its line, or next to another job of it. */
export type MoveTo = "first" | "last" | { readonly before: string } | { readonly after: string };

export type Moved = { readonly id: string; readonly priority: number; readonly position: number };

export async function moveJob(tx: Tx, id: string, to: MoveTo): Promise<Moved> {
  const target = checkTarget(id, to);
  const job = await holdLineOf(tx, id, "moved");
  const where = typeof target === "string" ? target : await nextTo(tx, job, target);
  return putAt(tx, job, job.priority, where);
}

export async function prioritiseJob(tx: Tx, id: string, priority: number): Promise<Moved> {
  checkPriority(priority);
  const job = await holdLineOf(tx, id, "prioritised");
  if (job.priority === priority) return { id, priority, position: job.position };
  return putAt(tx, job, priority, "last");
}

async function putAt(tx: Tx, job: Standing, priority: number, where: Where): Promise<Moved> {
  const { id, seq } = job;
  const key = { tenant: tx.tenant, id };
  const line: Line = { lane: job.lane_seq, priority, except: seq };
  const gap = await gapAt(tx, line, where);
  const { low, high } = gap;
  const isThere = (low === null || job.position > low) && (high === null || job.position < high);
  if (priority === job.priority && isThere) return { id, priority, position: job.position };
  const { position, others } = await roomIn(tx, line, gap);
  // On PostgreSQL a claim that is just taking it is waited for. One whose priority was changed meanwhile stands where that put it.
  const changed = [job, ...others].map((each) => each.seq);
  await lockLines(tx, sql`select seq from daybook_line where seq ${anyOf("integer", changed)}`);
  const moved = await tx.run(sql`update daybook_line set priority = ${priority}, position = ${position}
    where seq = ${seq} and started_at is null and priority = ${job.priority}`);
  if (moved === 0 && !stands(await findJobRow(tx, key)))
    throw await refusal(tx, id, priority === job.priority ? "moved" : "prioritised");
  await renumber(tx, others);
  if (moved === 1 && priority !== job.priority)
    await tx.run(sql`update daybook_job set priority = ${priority} where seq = ${seq}`);
  return { id, priority, position };
}

type Beside = { readonly side: "before" | "after"; readonly other: string };

function checkTarget(id: string, to: MoveTo): "first" | "last" | Beside {
  if (to === "first" || to === "last") return to;
  const advice = '"first", "last", { before: id } or { after: id }';
  if (typeof to !== "object" || to === null) throw invalid(`a job cannot be moved to ${quote(to)}: give ${advice}`);
  refuseUnknown(to, ["before", "after"], "a move");
  const given = Object.entries(to) as ["before" | "after", unknown][];
  const [side, other] = given[0] ?? [];
  if (side === undefined || given.length !== 1) throw invalid(`a job is moved to one place: ${advice}`);
  if (typeof other !== "string") throw invalid(`${side} ${quote(other)} is not the id of a job`);
  if (other === id) throw invalid(`job ${id} cannot be moved ${side} itself: name another job`);
  return { side, other };
}

async function nextTo(tx: Tx, job: Standing, { side, other: otherId }: Beside): Promise<Where> {
  const other = await findJobRow(tx, { tenant: tx.tenant, id: otherId });
  if (other === undefined) throw notFound(`there is no job ${otherId} to move ${job.id} ${side}`, { id: otherId });
  if (other.lane_seq !== job.lane_seq) {
    const both = `job ${job.id} is in queue ${quote(job.queue)} and job ${otherId} in queue ${quote(other.queue)}`;
    const details = { id: job.id, queue: job.queue, other: otherId, otherQueue: other.queue };
    throw invalid(`${both}: a job moves within its own queue`, { details });
  }
  if (!stands(other)) {
    const { status } = other;
    throw conflict(`job ${otherId} is ${status} and no longer stands in line`, { id: otherId, status });
  }
  if (other.priority !== job.priority) {
    const both = `job ${job.id} has priority ${job.priority} and job ${otherId} ${other.priority}`;
    const details = { id: job.id, priority: job.priority, other: otherId, otherPriority: other.priority };
    throw conflict(`${both}: prioritise it to ${other.priority} first, then move it`, details);
  }
  return side === "before" ? { before: other.position } : { after: other.position };
}

/** The job, with its line held until the transaction ends; refused when it has left the line. */
async function holdLineOf(tx: Tx, id: string, verb: string): Promise<Standing> {
  // The lane of a job never changes, so it can be read before it is held.
  const found = await findJobRow(tx, { tenant: tx.tenant, id });
  if (found !== undefined) await holdLines(tx, [found.lane_seq]);
  const job = tx.dialect === "sqlite" ? found : await findJobRow(tx, { tenant: tx.tenant, id });
  if (stands(job)) return job;
  throw await refusal(tx, id, verb);
}
