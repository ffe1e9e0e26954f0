// Enqueue: one row, in whatever transaction the caller is in. When that commits, the job exists and workers hear of
// it; when it is undone, there never was one.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { heardBy } from "../telemetry/cause.ts";
import { passOn } from "./let-in.ts";
import { insertJobs, type NewJob } from "./insert.ts";
import { jobNow, jobsChannel, queuedChannel, type JobRow, type JobStatus } from "./job.ts";
import { laneOf, lanesOf } from "./lane.ts";
import type { Prepared } from "./prepare.ts";
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

/** What was made, with what there is to say of it. */
export function withWarning(made: Enqueued, { warning }: Pick<Prepared, "warning">): Enqueued {
  return warning === undefined ? made : { ...made, warning };
}

export async function enqueue(tx: Tx, prepared: Prepared): Promise<Enqueued> {
  const lane = laneOf(tx, tx.tenant, prepared.queue);
  return enqueueInto(tx, typeof lane === "number" ? lane : await lane, prepared);
}

/** Many at once. Jobs without keys go in as one statement; one with a key is decided by itself, in its turn. */
export async function enqueueMany(tx: Tx, all: readonly Prepared[]): Promise<Enqueued[]> {
  const done: Enqueued[] = [];
  const lanes = await lanesOf(
    tx,
    tx.tenant,
    all.map(({ queue }) => queue),
  );
  const laneFor = (prepared: Prepared): number => lanes.get(prepared.queue) ?? 0;
  for (let from = 0; from < all.length;) {
    let to = from;
    while (to < all.length && isFree(all[to])) to++;
    if (to === from) {
      const prepared = all[from++] as Prepared;
      done.push(await enqueueInto(tx, laneFor(prepared), prepared));
      continue;
    }
    const rows = all.slice(from, to).map((prepared) => newJob(tx, laneFor(prepared), prepared));
    await insertJobs(tx, rows);
    for (const { id, name, status } of rows) done.push({ id, name, status, created: true });
    from = to;
  }
  tx.wake(done.every(({ status }) => status === "queued") ? queuedChannel : jobsChannel);
  return done;
}

/** Jobs without keys, of any tenants. */
export async function enqueueAll(
  tx: Tx,
  all: readonly { readonly tenant: string; readonly prepared: Prepared }[],
): Promise<Enqueued[]> {
  const rows: NewJob[] = [];
  for (const { tenant, prepared } of all) {
    const lane = laneOf(tx, tenant, prepared.queue);
    rows.push(newJob(tx, typeof lane === "number" ? lane : await lane, prepared, tenant));
  }
  await insertJobs(tx, rows);
  tx.wake(rows.every(({ status }) => status === "queued") ? queuedChannel : jobsChannel);
  return rows.map(({ id, name, status }) => ({ id, name, status, created: true }));
}

function isFree(prepared: Prepared | undefined): boolean {
  return prepared?.key === null && prepared.idempotencyKey === null;
}

const conflictTriesMax = 10;

// On PostgreSQL whoever holds the key may start or end between two of our statements, so the decision is made again
// until it holds.
async function enqueueInto(tx: Tx, lane: number, prepared: Prepared): Promise<Enqueued> {
  for (let tries = 0; tries < conflictTriesMax; tries++) {
    const row = newJob(tx, lane, prepared);
    const created = await insertJobs(tx, [row]);
    tx.wake(row.status === "queued" && created === 1 ? queuedChannel : jobsChannel);
    if (created === 1) return { id: row.id, name: row.name, status: row.status, created: true };
    const decided = await resolveConflict(tx, prepared, row);
    if (decided !== undefined) return decided;
  }
  throw new DaybookError(
    "conflict",
    `key ${quote(prepared.key)} of ${prepared.name} changes hands too fast: try again`,
  );
}

export function newJob(tx: Tx, lane: number, prepared: Prepared, tenant = tx.tenant): NewJob {
  const availableAt = Math.max(tx.now, prepared.at ?? tx.now + prepared.delayMs);
  const waits = availableAt > tx.now;
  const heard = heardBy(prepared.cause);
  return {
    tenant_id: tenant,
    id: tx.ids(),
    lane_seq: lane,
    name: prepared.name,
    status: waits ? "waiting" : "queued",
    waits_for: waits ? "time" : null,
    waits_key: null,
    priority: prepared.priority,
    created_at: tx.now,
    available_at: availableAt,
    params: prepared.params,
    attempts: prepared.attempts,
    losses_max: prepared.losses,
    backoff: prepared.backoff,
    timeout_ms: prepared.timeoutMs,
    key: prepared.key,
    key_scope: prepared.key === null ? null : prepared.keyScope,
    key_until: prepared.key !== null && prepared.keyScope === "window" ? tx.now + prepared.keyWindowMs : null,
    idempotency_key: prepared.idempotencyKey,
    limits: prepared.limits,
    limit_key: prepared.limitKey,
    tags: prepared.tags,
    cause_run_id: prepared.cause?.runId ?? null,
    root_run_id: prepared.cause?.rootRunId ?? null,
    traceparent: prepared.traceparent ?? null,
    about: heard === undefined ? null : JSON.stringify({ heard }),
    template_id: prepared.templateId ?? null,
    ...prepared.owner,
  };
}

type Holder = JobRow & { readonly key_until: number | null };

/** What the holder of a taken key means for the enqueue; undefined when there is no holder any more. */
async function resolveConflict(tx: Tx, prepared: Prepared, row: NewJob): Promise<Enqueued | undefined> {
  const same =
    prepared.idempotencyKey === null
      ? undefined
      : await tx.get<JobRow>(sql`select * from ${jobNow}
          where job.tenant_id = ${tx.tenant} and job.idempotency_key = ${prepared.idempotencyKey}`);
  if (same !== undefined) {
    if (same.name === prepared.name && same.params === prepared.params) return kept(same);
    throw new DaybookError(
      "conflict",
      `idempotencyKey ${quote(prepared.idempotencyKey)} belongs to job ${same.id} (${same.name}) with other params: ` +
        "use a new key for a new request",
      { details: { id: same.id } },
    );
  }
  const holder = await tx.get<Holder>(sql`select job.*, held.until_at as key_until
    from daybook_job_key held cross join ${jobNow}
    where held.tenant_id = ${tx.tenant} and held.name = ${prepared.name} and held.key = ${prepared.key}
      and job.seq = held.job_seq`);
  if (holder === undefined) return undefined;
  if (holder.key_until !== null && holder.key_until <= tx.now) {
    await tx.run(sql`delete from daybook_job_key where job_seq = ${holder.seq}`);
    return undefined;
  }
  if (prepared.onConflict === "keep") return kept(holder);
  const started = holder.retry_of !== null || !(holder.status === "waiting" || holder.status === "queued");
  if (prepared.onConflict === "replace" && !started) return replace(tx, holder, row);
  throw new DaybookError(
    "conflict",
    `key ${quote(prepared.key)} of ${prepared.name} is taken by job ${holder.id}, which is ${holder.status}: ` +
      'wait for it, use another key, or onConflict: "keep"',
    { details: { id: holder.id, status: holder.status } },
  );
}

function kept(holder: JobRow): Enqueued {
  return { id: holder.id, name: holder.name, status: holder.status, created: false };
}

// The place in line stays: replacing what to do must not cost the turn. A retry is not replaced: its chain has begun
// with these params. One that was moved has its place among those of its priority; in another it stands by its age.
async function replace(tx: Tx, holder: JobRow, row: NewJob): Promise<Enqueued | undefined> {
  const { waits_for: waitsFor, available_at: availableAt } = row;
  if (!(await restand(tx, holder.seq, { waitsFor, availableAt }))) return undefined;
  await tx.run(sql`update daybook_line set priority = ${row.priority},
      position = case when priority = ${row.priority} then position else seq * 100 end,
      ties = ${tie.key | (row.limits == null ? 0 : tie.limit)}
    where seq = ${holder.seq}`);
  await tx.run(sql`update daybook_job set params = ${row.params}, priority = ${row.priority}, due_at = ${availableAt}, tags = ${row.tags ?? null},
      limits = ${row.limits ?? null}, limit_key = ${row.limit_key ?? null}, attempts = ${row.attempts},
      backoff = ${row.backoff}, timeout_ms = ${row.timeout_ms}, losses_max = ${row.losses_max},
      template_id = ${row.template_id ?? null}
    where seq = ${holder.seq}`);
  await passOn(tx, [holder]);
  return { id: holder.id, name: holder.name, status: row.status, created: false };
}
