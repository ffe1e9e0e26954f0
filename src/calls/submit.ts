// Submit: the call, its tags and its job, in whatever transaction the caller is in.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { toJson } from "../core/json.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { eachRow } from "../storage/word.ts";
import { newJob } from "../jobs/enqueue.ts";
import { insertJobs } from "../jobs/insert.ts";
import { jobsChannel, queuedChannel } from "../jobs/job.ts";
import { laneOf } from "../jobs/lane.ts";
import type { Limits } from "../jobs/limit.ts";
import { neverBlamed } from "../jobs/outcome.ts";
import { callJobName, callKind, callQueue, hostKey, sealedFor, type CallRow, type CallStatus } from "./call.ts";
import { tellCalls } from "./facts.ts";
import type { PreparedCall } from "./prepare.ts";
import { keptRequest } from "./request/content.ts";
import type { CallsRoom } from "./room.ts";

export type Submitted = {
  readonly id: string;
  readonly name: string;
  readonly status: CallStatus;
  readonly dueAt: number;
  /** False when the idempotency key already had a call, which this then is. */
  readonly created: boolean;
};

/** A call that is sent again names the first one, and sends its key unless it asks for its own. */
export type Again = { readonly resendOf: string; readonly sendKey: string | null };

export async function submitCall(
  tx: Tx,
  room: CallsRoom,
  prepared: PreparedCall,
  again: Again | null = null,
): Promise<Submitted> {
  const { settings, ears } = room;
  const { content, name, host, policy, idempotencyKey } = prepared;
  const id = tx.ids();
  const dueAt = prepared.at ?? tx.now + prepared.delayMs;
  const row = {
    ...{ tenant_id: tx.tenant, id, name, due_at: dueAt, method: content.method, host },
    correlation_id: prepared.correlationId ?? prepared.cause?.rootRunId ?? id,
    ...keptRequest(content, { keys: settings.keys, tenant: tx.tenant, about: sealedFor(tx.tenant, id) }),
  };
  const [made] = await tx.all<{
    seq: number;
  }>(sql`insert into daybook_call (tenant_id, id, name, status, submitted_at, due_at,
      method, host, request, content, key_id, policy, correlation_id, idempotency_key, send_key, resend_of)
    values (${row.tenant_id}, ${id}, ${name}, 'scheduled', ${tx.now}, ${dueAt}, ${row.method}, ${host}, ${row.request},
      ${row.content}, ${row.key_id}, ${JSON.stringify(policy)}, ${row.correlation_id}, ${idempotencyKey},
      ${again?.sendKey ?? id}, ${again?.resendOf ?? null}) on conflict do nothing returning seq`);
  if (made === undefined) return theSame(tx, room, prepared);
  await checkRoom(tx, room);
  if (prepared.tags.length > 0) {
    const tags = prepared.tags.map((tag) => ({ tenant_id: tx.tenant, call_id: id, tag }));
    const columns = { tenant_id: "text", call_id: "text", tag: "text" } as const;
    await tx.run(sql`insert into daybook_call_tag (tenant_id, call_id, tag) ${eachRow(columns, tags)}`);
  }
  await enqueueCall(tx, room, prepared, { id, seq: made.seq });
  await tellCalls(tx, ears, [{ topic: "call.submitted", row }]);
  return { id, name, status: "scheduled", dueAt, created: true };
}

async function enqueueCall(
  tx: Tx,
  { settings: { perHost, perTenant } }: CallsRoom,
  { host, policy, cause, at, delayMs }: PreparedCall,
  { id, seq }: { readonly id: string; readonly seq: number },
): Promise<void> {
  const key = hostKey(host);
  const rules: Limits = {
    key: perHost.concurrency,
    // All calls have one name, so the limit of that name in a tenant is the tenant's own.
    ...(perTenant.concurrency === null ? {} : { name: perTenant.concurrency }),
    ...(perHost.rate === null ? {} : { rate: { key, ...perHost.rate } }),
  };
  const lane = await laneOf(tx, tx.tenant, callQueue);
  const job = newJob(tx, lane, {
    ...{ name: callJobName, queue: callQueue, priority: 0, params: JSON.stringify({ id }), at, delayMs },
    ...{ key: null, key_scope: null, keyWindowMs: null, onConflict: "keep", idempotency_key: null, tags: null },
    ...{ attempts: policy.attempts, backoff: policy.backoff, timeout_ms: policy.timeoutMs, losses_max: neverBlamed },
    ...{ limits: JSON.stringify(rules), limit_key: key, cause, traceparent: undefined, warning: undefined },
  });
  await insertJobs(tx, [{ ...job, kind: callKind, kind_seq: seq }]);
  tx.wake(job.status === "queued" ? queuedChannel : jobsChannel);
}

type Holder = Pick<CallRow, "id" | "name" | "status" | "due_at" | "content" | "key_id">;

/** The call that has the idempotency key, if it is for the same request. */
async function theSame(tx: Tx, { settings: { keys } }: CallsRoom, prepared: PreparedCall): Promise<Submitted> {
  const { idempotencyKey, content } = prepared;
  const held = await tx.get<Holder>(sql`select id, name, status, due_at, content, key_id from daybook_call
    where tenant_id = ${tx.tenant} and idempotency_key = ${idempotencyKey}`);
  if (held === undefined)
    throw new DaybookError("conflict", "the call with this idempotencyKey is just changing: try again");
  const { id, name, status } = held;
  const text = held.key_id === null ? held.content : keys?.open(held.content, sealedFor(tx.tenant, id));
  if (text === toJson(content, { what: "request", bytesMax: Number.MAX_SAFE_INTEGER })) {
    return { id, name, status, dueAt: held.due_at, created: false };
  }
  throw new DaybookError(
    "conflict",
    `idempotencyKey ${quote(idempotencyKey)} belongs to call ${id} with another request: use a new key for a new one`,
    { details: { id } },
  );
}

const countedEach = 1000;

// Counting all of them with each would cost more than the rest. So what is left is counted now and then, more often the
// less there is, and exactly at the end. Of what other processes submit between two counts it knows nothing: each may go beyond
// by what it still had left, which is at most half of what is allowed. It holds off a flood, and promises no number.
async function checkRoom(tx: Tx, { settings: { queuedMax }, roomLeft }: CallsRoom): Promise<void> {
  const left = roomLeft.get(tx.tenant) ?? 0;
  if (left > 0) return void roomLeft.set(tx.tenant, left - 1);
  const found = await tx.get<{ n: number }>(sql`select count(*) as n from (select 1 as one from daybook_call
    where tenant_id = ${tx.tenant} and status in ('scheduled', 'running') limit ${queuedMax + 1}) as open_calls`);
  const open = found?.n ?? 0;
  if (open > queuedMax) {
    throw new DaybookError(
      "conflict",
      `${queuedMax} calls have not ended, which is all that are allowed: wait for some`,
      {
        details: { queuedMax },
      },
    );
  }
  roomLeft.set(tx.tenant, Math.min(countedEach, Math.floor((queuedMax - open) / 2)));
}
