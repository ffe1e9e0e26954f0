// Unique jobs: at most one job of a name has a key at a time. The row of a key is its primary key, so of two enqueues at once one
// takes it, and the other one's options decide what becomes of its job. The end of the holder frees the key.
import { conflict } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { passOn } from "./wait/park.ts";
import { jobNow, type JobRow } from "./job.ts";
import type { Prepared } from "./define.ts";
import { restand, takeBack, tie } from "./state.ts";
import type { NewJob } from "./enqueue.ts";

import { anyOf } from "../storage/word.ts";

type Keyed = Pick<NewJob, "tenant_id" | "name" | "key">;

type Holder = JobRow & { readonly key_until: number | null };

type Found = Pick<JobRow, "id" | "name" | "status">;

/** The job that an enqueue with a taken key gets; undefined when there is no holder any more. */
export async function resolveConflict(tx: Tx, prepared: Prepared, row: NewJob): Promise<Found | undefined> {
  const { name, params, idempotency_key, onConflict } = prepared;
  const same = await tx.get<JobRow>(sql`select * from ${jobNow}
    where job.tenant_id = ${tx.tenant} and job.idempotency_key = ${idempotency_key}`);
  if (same !== undefined) {
    if (same.name === name && same.params === params) return same;
    const whose = `belongs to job ${same.id} (${same.name}) with other params: use a new key for a new request`;
    throw conflict(`idempotencyKey ${quote(idempotency_key)} ${whose}`, { id: same.id });
  }
  const holder = await holderOf(tx, row);
  if (holder === undefined) return undefined;
  if (holder.key_until !== null && holder.key_until <= tx.now) {
    await tx.run(sql`delete from daybook_job_key where job_seq = ${holder.seq}`);
    return undefined;
  }
  const { id, status } = holder;
  if (onConflict === "keep") return holder;
  const started = holder.retry_of !== null || !(status === "waiting" || status === "queued");
  if (onConflict === "replace" && !started) return replace(tx, holder, row);
  throw conflict(`${isTakenBy(holder)}, use another key, or onConflict: "keep"`, { id, status });
}

export async function holderOf(tx: Tx, { tenant_id, name, key }: Keyed): Promise<Holder | undefined> {
  return tx.get<Holder>(sql`select job.*, held.until_at as key_until from daybook_job_key held cross join ${jobNow}
    where held.tenant_id = ${tenant_id} and held.name = ${name} and held.key = ${key ?? null} and job.seq = held.job_seq`);
}

export function isTakenBy({ id, name, key, status }: JobRow): string {
  return `key ${quote(key)} of ${name} is taken by job ${id}, which is ${status}: wait for it`;
}

// The place in line stays: replacing what to do must not cost the turn. A retry is not replaced: its chain has begun
// with these params. One that was moved has its place among those of its priority; in another it stands by its age.
async function replace(tx: Tx, holder: JobRow, row: NewJob): Promise<Found | undefined> {
  const { available_at: availableAt } = row;
  // What is held stays held, whatever it is to do.
  const isHeld = holder.waits_for === "release";
  const to = isHeld ? ({ waitsFor: "release", waitsKey: holder.waits_key } as const) : { waitsFor: row.waits_for };
  if (!(await restand(tx, holder.seq, { ...to, availableAt }))) return undefined;
  await tx.run(sql`update daybook_line set priority = ${row.priority},
      position = case when priority = ${row.priority} then position else seq * 100 end,
      ties = ${tie.key | (row.limits == null ? 0 : tie.limit)}
    where seq = ${holder.seq}`);
  await tx.run(sql`update daybook_job set params = ${row.params}, priority = ${row.priority},
      due_at = ${row.waits_for === null ? null : availableAt}, delay_ms = ${row.delay_ms ?? null}, tags = ${row.tags ?? null},
      limits = ${row.limits ?? null}, limit_key = ${row.limit_key ?? null}, attempts = ${row.attempts},
      backoff = ${row.backoff}, timeout_ms = ${row.timeout_ms}, losses_max = ${row.losses_max},
      template_id = ${row.template_id ?? null}
    where seq = ${holder.seq}`);
  await passOn(tx, [holder]);
  return { ...holder, status: isHeld ? "waiting" : row.status };
}

/** Takes the key of a job that was just inserted; takes the job back when another has it. */
export async function takeKey(tx: Tx, row: NewJob, seq: number): Promise<boolean> {
  const taken = await tx.run(sql`insert into daybook_job_key (tenant_id, name, key, job_seq, until_at)
    values (${row.tenant_id}, ${row.name}, ${row.key ?? ""}, ${seq}, ${row.key_until ?? null}) on conflict do nothing`);
  if (taken === 1) return true;
  await takeBack(tx, seq);
  return false;
}

/** The keys of jobs that ended are free; one that is taken for a window of time is free when that is over. */
export async function freeKeys(tx: Tx, ended: readonly Pick<JobRow, "seq" | "key_scope">[]): Promise<void> {
  const seqs = ended.flatMap((job) => (job.key_scope === "done" || job.key_scope === "queued" ? job.seq : []));
  if (seqs.length > 0) await tx.run(sql`delete from daybook_job_key where job_seq ${anyOf("integer", seqs)}`);
}
