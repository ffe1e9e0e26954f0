// Moves a job within its line. The line is an order, so whatever is asked for can be had, however often.
import { conflict, invalid, notFound } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { refusal } from "../cancel.ts";
import { checkPriority } from "../define.ts";
import { jobNow, seqsOf, type JobRow, type JobStatus } from "../job.ts";
import { holdLines, lockLines } from "../lock-order.ts";
import { gapAt, renumber, roomIn, type Line, type Where } from "./room.ts";

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
  const line: Line = { lane: job.lane_seq, priority, except: seq };
  const gap = await gapAt(tx, line, where);
  const { low, high } = gap;
  const isThere = (low === null || job.position > low) && (high === null || job.position < high);
  if (priority === job.priority && isThere) return { id, priority, position: job.position };
  const { position, others } = await roomIn(tx, line, gap);
  // On PostgreSQL whoever is just claiming it is waited for. One whose priority was changed meanwhile stands where that put it.
  await lockLines(tx, sql`select seq from daybook_line where seq ${anyOf("integer", [seq, ...seqsOf(others)])}`);
  const moved = await tx.run(sql`update daybook_line set priority = ${priority}, position = ${position}
    where seq = ${seq} and started_at is null and priority = ${job.priority}`);
  if (moved === 0 && !stands((await findPlaced(tx, id)) ?? {}))
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
  const other = await findPlaced(tx, otherId);
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

type Standing = Pick<JobRow, "seq" | "id" | "lane_seq" | "status" | "priority"> & {
  readonly position: number;
  readonly queue: string;
};

/** The job, with its line held until the transaction ends; refused when it has left the line. */
async function holdLineOf(tx: Tx, id: string, verb: string): Promise<Standing> {
  // The lane of a job never changes, so it can be read before it is held.
  const found = await findPlaced(tx, id);
  if (found !== undefined) await holdLines(tx, [found.lane_seq]);
  const job = tx.dialect === "sqlite" ? found : await findPlaced(tx, id);
  if (job !== undefined && stands(job)) return job;
  throw await refusal(tx, id, verb);
}

async function findPlaced(tx: Tx, id: string): Promise<Standing | undefined> {
  return tx.get<Standing>(sql`select job.seq, job.id, job.lane_seq, job.status, job.priority, job.position,
      (select queue from daybook_lane lane where lane.seq = job.lane_seq) as queue
    from ${jobNow} where job.tenant_id = ${tx.tenant} and job.id = ${id}`);
}

/** It has a place in line: it waits or is queued. */
export function stands({ status }: { readonly status?: JobStatus }): boolean {
  return status === "waiting" || status === "queued";
}
