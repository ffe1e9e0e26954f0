// Enqueue: one row, in whatever transaction the caller is in. When that commits, the job exists and workers hear of
// it; when it is undone, there never was one.
import { conflict } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { together } from "../storage/unit.ts";
import { heardBy } from "../core/cause.ts";
import { passOn } from "./wait/park.ts";
import { insertJobs, type NewJob } from "./insert.ts";
import { jobNow, jobsChannel, queuedChannel, type JobRow, type JobStatus } from "./job.ts";
import { laneOf, lanesOf } from "./claim/lane.ts";
import type { Prepared } from "./define.ts";
import { restand, tie } from "./state.ts";

/** `Result` is what the job's handler returns. */
export type Enqueued<Result = unknown> = {
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  /** False when the key or the idempotency key already had a job, which this then is. */
  readonly created: boolean;
  /** Set when the job was made by a name that nobody has hosted yet, or that has a limit which could not be counted. */
  readonly warning?: string;
  /** For the compiler alone; there is nothing here when the program runs. */
  readonly "~result"?: Result;
};

export function withWarning(made: Enqueued, { warning }: Partial<Pick<Prepared, "warning">>): Enqueued {
  return warning === undefined ? made : { ...made, warning };
}

function answer({ id, name, status }: NewJob | JobRow, created: boolean): Enqueued {
  return { id, name, status, created };
}

export async function enqueue(tx: Tx, prepared: Prepared): Promise<Enqueued> {
  const lane = laneOf(tx, tx.tenant, prepared.queue);
  const row = newJob(tx, typeof lane === "number" ? lane : await lane, prepared);
  const made = await insertOne(tx, row, prepared);
  wakeFor(tx, [made]);
  return withWarning(made, prepared);
}

type Wanted = { readonly tenant: string; readonly prepared: Prepared };

/** Jobs of any tenants. Those without keys are one statement; one with a key (of the transaction's tenant) is decided in its turn. */
export async function enqueueAll(tx: Tx, all: readonly Wanted[]): Promise<Enqueued[]> {
  const lanes = new Map<string, Map<string, number>>();
  for (const [tenant, some] of Map.groupBy(all, (each) => each.tenant)) {
    const queues = some.map(({ prepared }) => prepared.queue);
    lanes.set(tenant, await lanesOf(tx, tenant, queues));
  }
  const done: Enqueued[] = [];
  const free: NewJob[] = [];
  for (const { tenant, prepared } of all) {
    const row = newJob(tx, lanes.get(tenant)?.get(prepared.queue) ?? 0, prepared, tenant);
    if (isFree(prepared)) {
      free.push(row);
      done.push(withWarning(answer(row, true), prepared));
      continue;
    }
    await insertJobs(tx, free.splice(0));
    done.push(withWarning(await insertOne(tx, row, prepared), prepared));
  }
  await insertJobs(tx, free);
  wakeFor(tx, done);
  return done;
}

/** Nothing that exists already can stand in its way. */
export function isFree({ key, idempotency_key }: Prepared): boolean {
  return key === null && idempotency_key === null;
}

function wakeFor(tx: Tx, made: readonly Enqueued[]): void {
  tx.wake(made.every((each) => each.created && each.status === "queued") ? queuedChannel : jobsChannel);
}

const conflictTriesMax = 10;

// On PostgreSQL the holder of the key may start or end between two of our statements: the decision is made until it holds.
async function insertOne(tx: Tx, row: NewJob, prepared: Prepared): Promise<Enqueued> {
  for (let tries = 0; tries < conflictTriesMax; tries++) {
    if ((await insertJobs(tx, [row])) === 1) return answer(row, true);
    const decided = await resolveConflict(tx, prepared, row);
    if (decided !== undefined) return decided;
  }
  throw conflict(`key ${quote(row.key)} of ${row.name} changes hands too fast: try again`, {});
}

export function newJob(tx: Tx, lane: number, prepared: Prepared, tenant = tx.tenant): NewJob {
  const { cause, keyWindowMs } = prepared;
  const availableAt = Math.max(tx.now, prepared.at ?? tx.now + prepared.delayMs);
  const waits = availableAt > tx.now;
  const heard = heardBy(cause);
  return {
    ...prepared,
    tenant_id: tenant,
    id: tx.ids(),
    lane_seq: lane,
    status: waits ? "waiting" : "queued",
    waits_for: waits ? "time" : null,
    waits_key: null,
    created_at: tx.now,
    available_at: availableAt,
    delay_ms: waits && prepared.at === null ? prepared.delayMs : null,
    key_until: keyWindowMs === null ? null : tx.now + keyWindowMs,
    cause_run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
    traceparent: prepared.traceparent ?? null,
    about: heard === undefined ? null : JSON.stringify({ heard }),
  };
}

type Keyed = Pick<NewJob, "tenant_id" | "name" | "key">;
type Holder = JobRow & { readonly key_until: number | null };

/** What the holder of a taken key means for the enqueue; undefined when there is no holder any more. */
async function resolveConflict(tx: Tx, prepared: Prepared, row: NewJob): Promise<Enqueued | undefined> {
  const { name, params, idempotency_key, onConflict } = prepared;
  const same = await tx.get<JobRow>(sql`select * from ${jobNow}
    where job.tenant_id = ${tx.tenant} and job.idempotency_key = ${idempotency_key}`);
  if (same !== undefined) {
    if (same.name === name && same.params === params) return answer(same, false);
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
  if (onConflict === "keep") return answer(holder, false);
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
async function replace(tx: Tx, holder: JobRow, row: NewJob): Promise<Enqueued | undefined> {
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
  return answer({ ...holder, status: isHeld ? "waiting" : row.status }, false);
}

/** On the book, jobs without keys that are enqueued at the same time are one statement. */
export type EnqueueTogether = ReturnType<typeof enqueueTogether>;

const unitJobsMax = 500;

export function enqueueTogether(store: Store) {
  const enqueue = together(enqueueAll, unitJobsMax);
  return (tenant: string, prepared: Prepared): Promise<Enqueued> => enqueue(store, { tenant, prepared });
}
