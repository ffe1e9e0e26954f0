// Enqueue: one row, in whatever transaction the caller is in. When that commits, the job exists and workers hear of
// it; when it is undone, there never was one.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { heardBy } from "../telemetry/cause.ts";
import { passOn } from "./free-slots.ts";
import { insertJobs, type NewJob } from "./insert.ts";
import { jobsChannel, queuedChannel, type JobRow, type JobStatus } from "./job.ts";
import { laneOf, lanesOf } from "./lane.ts";
import type { Prepared } from "./prepare.ts";

/** `Result` is what the job's handler returns. */
export type Enqueued<Result = unknown> = {
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  /** False when the key or the idempotency key already had a job, which this then is. */
  readonly created: boolean;
  /** For the compiler alone; there is nothing here when the program runs. */
  readonly "~result"?: Result;
};

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

export function newJob(tx: Tx, lane: number, prepared: Prepared): NewJob {
  const availableAt = Math.max(tx.now, prepared.at ?? tx.now + prepared.delayMs);
  const waits = availableAt > tx.now;
  const heard = heardBy(prepared.cause);
  return {
    tenant_id: tx.tenant,
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
    origin: "enqueued",
    attempt: 1,
    attempts: prepared.attempts,
    losses: 0,
    losses_max: prepared.losses,
    backoff: prepared.backoff,
    timeout_ms: prepared.timeoutMs,
    retry_of: null,
    alone: 0,
    key: prepared.key,
    key_held: prepared.key,
    key_scope: prepared.key === null ? null : prepared.keyScope,
    key_until: prepared.key !== null && prepared.keyScope === "window" ? tx.now + prepared.keyWindowMs : null,
    idempotency_key: prepared.idempotencyKey,
    limits: prepared.limits,
    limit_key: prepared.limitKey,
    tags: prepared.tags,
    cause_run_id: prepared.cause?.runId ?? null,
    root_run_id: prepared.cause?.rootRunId ?? null,
    ...(prepared.traceparent === undefined ? {} : { traceparent: prepared.traceparent }),
    ...(heard === undefined ? {} : { about: JSON.stringify({ heard }) }),
    ...(prepared.templateId === undefined ? {} : { template_id: prepared.templateId }),
    ...prepared.owner,
  };
}

type Holder = Pick<
  JobRow,
  "seq" | "id" | "tenant_id" | "name" | "status" | "params" | "key_until" | "retry_of" | "limits" | "limit_key"
>;

/** What the holder of a taken key means for the enqueue; undefined when there is no holder any more. */
async function resolveConflict(tx: Tx, prepared: Prepared, row: NewJob): Promise<Enqueued | undefined> {
  const same = await findHolder(tx, sql`idempotency_key = ${prepared.idempotencyKey}`);
  if (same !== undefined) {
    if (same.name === prepared.name && same.params === prepared.params) return kept(same);
    throw new DaybookError(
      "conflict",
      `idempotencyKey ${quote(prepared.idempotencyKey)} belongs to job ${same.id} (${same.name}) with other params: ` +
        "use a new key for a new request",
      { details: { id: same.id } },
    );
  }
  const holder = await findHolder(tx, sql`name = ${prepared.name} and key_held = ${prepared.key}`);
  if (holder === undefined) return undefined;
  if (holder.key_until !== null && holder.key_until <= tx.now) {
    await tx.run(sql`update job set key_held = null where seq = ${holder.seq}`);
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

async function findHolder(tx: Tx, where: ReturnType<typeof sql>): Promise<Holder | undefined> {
  return tx.get<Holder>(
    sql`select seq, id, tenant_id, name, status, params, key_until, retry_of, limits, limit_key from job
      where tenant_id = ${tx.tenant} and ${where}`,
  );
}

function kept(holder: Holder): Enqueued {
  return { id: holder.id, name: holder.name, status: holder.status, created: false };
}

// The place in line stays: replacing what to do must not cost the turn. A retry is not replaced: its chain has begun
// with these params. One that was moved has its place among those of its priority; in another it stands by its age.
async function replace(tx: Tx, holder: Holder, row: NewJob): Promise<Enqueued | undefined> {
  const waitsForTime = row.waits_for === "time";
  const replaced = await tx.run(sql`update job set params = ${row.params}, priority = ${row.priority},
      position = case when priority = ${row.priority} then position else seq * 100 end,
      available_at = ${row.available_at}, tags = ${row.tags}, limits = ${row.limits}, limit_key = ${row.limit_key},
      attempts = ${row.attempts}, backoff = ${row.backoff}, timeout_ms = ${row.timeout_ms},
      losses_max = ${row.losses_max}, template_id = ${row.template_id ?? null},
      status = ${waitsForTime ? "waiting" : "queued"}, waits_for = ${waitsForTime ? "time" : null}, waits_key = null
    where seq = ${holder.seq} and status in ('waiting', 'queued')`);
  if (replaced === 0) return undefined;
  await passOn(tx, [holder]);
  return { id: holder.id, name: holder.name, status: row.status, created: false };
}
