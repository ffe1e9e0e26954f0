// Submit checks a call, and writes it with its tags and its job in the caller's transaction.
import { checkBackoff, type Backoff } from "../core/retry.ts";
import { currentCause } from "../core/cause.ts";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { conflict, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkKey, checkName, checkTags } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { futureMs, type TimeInput } from "../core/time.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { insertInto, type ColumnType } from "../storage/word.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import type { Limits } from "../jobs/claim/limit.ts";
import { newJob, insertJobs, type NewJob } from "../jobs/enqueue.ts";
import { jobsChannel, queuedChannel } from "../jobs/job.ts";
import { neverBlamed } from "../jobs/settle/settle.ts";
import { callJobName, callKind, callQueue, hostKey, tellCalls } from "./call.ts";
import type { CallPolicy, CallRow, CallStatus, Method } from "./call.ts";
import { checkRequest, requestKeys, type CallRequest } from "./request/content.ts";
import { isSameRequest, keepRequest, type RequestColumns } from "./request/kept.ts";
import type { CallsRoom } from "./room.ts";

export type Submitted = {
  readonly id: string;
  readonly name: string;
  readonly status: CallStatus;
  readonly dueAt: number;
  /** False when the idempotency key already had a call: this is then that call. */
  readonly created: boolean;
};

/** A resend names the call that it repeats, and sends that call's key unless it asks for a new one. */
type Again = { readonly resendOf: string; readonly sendKey: string | null };

export async function submitCall(
  tx: Tx,
  room: CallsRoom,
  prepared: PreparedCall,
  again: Again | null = null,
): Promise<Submitted> {
  const { content, ...rest } = prepared;
  const { tenant } = tx;
  const id = tx.ids();
  const kept = keepRequest(content, { keys: room.settings.keys, tenant, id });
  const [made] = await insertCalls(tx, room, [{ id, tenant, method: content.method, ...kept, ...rest, again }]);
  if (made === undefined) return theSame(tx, room, prepared);
  await checkRoom(tx, room);
  return { id, name: made.name, status: "scheduled", dueAt: made.due_at, created: true };
}

/** A call, checked, with its request as it is kept. */
export type NewCall = Omit<PreparedCall, "content"> &
  RequestColumns & {
    readonly id: string;
    readonly tenant: string;
    readonly method: Method;
    readonly again?: Again | null;
    /** It tells of an end, and is none of those that its tenant submitted. */
    readonly notice?: boolean;
  };

const callColumns = {
  tenant_id: "text",
  id: "text",
  name: "text",
  status: "text",
  submitted_at: "integer",
  due_at: "integer",
  method: "text",
  host: "text",
  request: "text",
  content: "text",
  key_id: "text",
  kept: "text",
  fingerprint: "text",
  policy: "text",
  correlation_id: "text",
  idempotency_key: "text",
  send_key: "text",
  resend_of: "text",
  notice: "integer",
} as const satisfies { readonly [Name in keyof NewRow]: ColumnType };
const tagColumns = { tenant_id: "text", call_id: "text", tag: "text" } as const;

/** Writes calls of any tenants with their tags and their jobs, and says which were made: one whose idempotency key has a call is not. */
export async function insertCalls(tx: Tx, room: CallsRoom, calls: readonly NewCall[]): Promise<NewRow[]> {
  const rows = calls.map((call) => newRow(tx, call));
  const inserted = await tx.all<{ seq: number; id: string }>(
    sql`${insertInto("daybook_call", callColumns, rows)} on conflict do nothing returning seq, id`,
  );
  if (inserted.length === 0) return [];
  const seqOf = new Map(inserted.map(({ seq, id }) => [id, seq]));
  const made = calls.filter(({ id }) => seqOf.has(id));
  const tags = made.flatMap(({ id, tenant, tags: list }) =>
    list.map((tag) => ({ tenant_id: tenant, call_id: id, tag })),
  );
  if (tags.length > 0) await tx.run(insertInto("daybook_call_tag", tagColumns, tags));
  const jobs: NewJob[] = [];
  for (const [tenant, some] of Map.groupBy(made, (call) => call.tenant)) {
    const lane = await laneOf(tx, tenant, callQueue);
    jobs.push(...some.map((call) => ({ ...jobOf(tx, room, call, lane), kind_seq: seqOf.get(call.id) ?? 0 })));
  }
  await insertJobs(tx, jobs);
  tx.wake(jobs.every(({ status }) => status === "queued") ? queuedChannel : jobsChannel);
  const told = rows.filter(({ id }) => seqOf.has(id));
  await tellCalls(
    tx,
    room.announce,
    told.map((row) => ({ topic: "call.submitted", row })),
  );
  return told;
}

type NewRow = ReturnType<typeof newRow>;

function newRow(tx: Tx, call: NewCall) {
  const { id, tenant, name, method, host, request, content, key_id, kept, fingerprint, policy, again, cause } = call;
  return {
    tenant_id: tenant,
    id,
    name,
    status: "scheduled",
    submitted_at: tx.now,
    due_at: call.at ?? tx.now + call.delayMs,
    method,
    host,
    request,
    content,
    key_id,
    kept,
    fingerprint,
    policy: JSON.stringify(policy),
    correlation_id: call.correlationId ?? cause?.rootRunId ?? id,
    idempotency_key: call.idempotencyKey,
    send_key: again?.sendKey ?? id,
    resend_of: again?.resendOf ?? null,
    notice: call.notice === true ? 1 : 0,
  };
}

function jobOf(tx: Tx, { settings: { perHost, perTenant } }: CallsRoom, call: NewCall, lane: number): NewJob {
  const { id, tenant, host, policy, cause, at, delayMs } = call;
  const key = hostKey(host);
  const rules: Limits = {
    key: perHost.concurrency,
    // All calls are jobs with one name, so a limit on that name limits the tenant.
    ...(perTenant.concurrency === null ? {} : { name: perTenant.concurrency }),
    ...(perHost.rate === null ? {} : { rate: { key, ...perHost.rate } }),
  };
  const prepared = {
    name: callJobName,
    queue: callQueue,
    priority: 0,
    params: JSON.stringify({ id }),
    at,
    delayMs,
    key: null,
    key_scope: null,
    keyWindowMs: null,
    onConflict: "keep" as const,
    idempotency_key: null,
    tags: null,
    attempts: policy.attempts,
    backoff: policy.backoff,
    timeout_ms: policy.timeoutMs,
    losses_max: neverBlamed,
    limits: JSON.stringify(rules),
    limit_key: key,
    cause,
    traceparent: undefined,
    warning: undefined,
  };
  return { ...newJob(tx, lane, prepared, tenant), kind: callKind };
}

type Holder = Pick<CallRow, "id" | "tenant_id" | "name" | "status" | "due_at" | "content" | "key_id" | "fingerprint">;

/** The call that has the idempotency key, if its request is the same. */
async function theSame(tx: Tx, { settings: { keys } }: CallsRoom, prepared: PreparedCall): Promise<Submitted> {
  const { idempotencyKey, content } = prepared;
  const held =
    await tx.get<Holder>(sql`select id, tenant_id, name, status, due_at, content, key_id, fingerprint from daybook_call
    where tenant_id = ${tx.tenant} and idempotency_key = ${idempotencyKey}`);
  if (held === undefined) throw conflict("the call with this idempotencyKey is just changing: try again", {});
  const { id, name, status } = held;
  if (isSameRequest(keys, held, content)) return { id, name, status, dueAt: held.due_at, created: false };
  const whose = `belongs to call ${id} with another request: use a new key for a new one`;
  throw conflict(`idempotencyKey ${quote(idempotencyKey)} ${whose}`, { id });
}

const countedEach = 1000;

// Counting all open calls at every submit would cost more than the submit. So each process counts now and then, more often the
// less is left, and at every submit near the limit. It does not see what others submit between two counts: each process may
// exceed the limit by what it had left, at most half of the limit. This stops a flood; it does not promise a number.
async function checkRoom(tx: Tx, { settings: { queuedMax }, roomLeft }: CallsRoom): Promise<void> {
  const left = roomLeft.get(tx.tenant) ?? 0;
  if (left > 0) return void roomLeft.set(tx.tenant, left - 1);
  // Notices are made whatever their number is, and take nothing of what a tenant may submit.
  const notices = await countOpen(tx, sql`notice = 1 and finished_at is null`);
  const all = await countOpen(tx, sql`status in ('scheduled', 'running') limit ${queuedMax + notices + 1}`);
  const open = all - notices;
  if (open > queuedMax) {
    throw conflict(`${queuedMax} calls have not ended, which is all that are allowed: wait for some`, { queuedMax });
  }
  roomLeft.set(tx.tenant, Math.min(countedEach, Math.floor((queuedMax - open) / 2)));
}

async function countOpen(tx: Tx, which: Sql): Promise<number> {
  const found = await tx.get<{ n: number }>(sql`select count(*) as n from (select 1 as one from daybook_call
    where tenant_id = ${tx.tenant} and ${which}) as open_calls`);
  return found?.n ?? 0;
}

export type When = {
  /** Not before this time. */
  readonly at?: TimeInput;
  /** Not before this long from now. */
  readonly in?: Duration;
};

export type SubmitOptions = CallRequest &
  When & {
    /** A name for people; default the method and host. */
    readonly name?: string;
    readonly tags?: readonly string[];
    /** Submitting the same key and request again returns the same call; another request with the key is refused. */
    readonly idempotencyKey?: string;
    /** Default the root run of its cause, else the call's own id. */
    readonly correlationId?: string;
    /** How many times it may be sent in total; default 1, or as many as `retry` has steps for. A lost process is not counted. */
    readonly attempts?: number;
    /** When to try again after no answer, or one that may differ next time: `"standard"` is 5 s, 5 m, 30 m, 2 h, 5 h, 10 h and
     *  10 h. */
    readonly retry?: "standard" | Backoff;
    /** How long one attempt may take in all; default 30 s. */
    readonly timeout?: Duration;
    /** How many redirects are followed; default none. */
    readonly redirects?: number;
  };

const known = [
  ...requestKeys,
  ...(["at", "in", "name", "tags", "idempotencyKey", "correlationId", "attempts", "retry", "timeout"] as const),
  "redirects",
] as const satisfies readonly (keyof SubmitOptions)[];

export type PreparedCall = Readonly<ReturnType<typeof prepareCall>>;

export function prepareCall(options: SubmitOptions) {
  if (typeof options !== "object" || options === null) throw invalid("submit takes { method, url, … }");
  refuseUnknown(options, known, "submit");
  const content = checkRequest(options);
  const { host } = new URL(content.url);
  const { name, idempotencyKey, correlationId } = options;
  return {
    content,
    host,
    ...checkWhen(options),
    tags: checkTags(options.tags ?? []),
    name: name === undefined ? shortName(`${content.method} ${host}`) : checkName(name, "name"),
    idempotencyKey: idempotencyKey === undefined ? null : checkKey(idempotencyKey, "idempotencyKey"),
    correlationId: correlationId === undefined ? null : checkKey(correlationId, "correlationId"),
    policy: checkPolicy(options),
    cause: currentCause(),
  };
}

export function shortName(text: string): string {
  return text.length > limits.nameBytesMax ? text.slice(0, limits.nameBytesMax) : text;
}

export function checkWhen({ at, in: delay }: When): { at: number | null; delayMs: number } {
  if (at !== undefined && delay !== undefined) throw invalid('give "at" or "in", not both');
  const time = at === undefined ? null : futureMs(at, "at");
  if (time !== null && time > limits.callDueMsMax) throw invalid(`at is ${quote(at)}, after the year 9999`);
  return { at: time, delayMs: delay === undefined ? 0 : durationMs(delay, "in") };
}

const standard: Backoff = ["5s", "5m", "30m", "2h", "5h", "10h", "10h"];

type Policy = Pick<SubmitOptions, "attempts" | "retry" | "timeout" | "redirects">;

export function checkPolicy({ attempts, retry, timeout, redirects }: Policy): CallPolicy {
  if (typeof retry === "string" && retry !== "standard") {
    throw invalid(`retry ${quote(retry)} is not known: "standard", a list of waits, or { base, factor, max, spread }`);
  }
  const backoff = retry === "standard" ? standard : retry;
  if (backoff !== undefined) checkBackoff(backoff);
  const steps = backoff === undefined ? 1 : Array.isArray(backoff) ? backoff.length + 1 : 4;
  return {
    attempts: checkCount(attempts ?? steps, "attempts", 1, 1000),
    backoff: backoff === undefined ? null : JSON.stringify(backoff),
    timeoutMs: durationMs(timeout ?? limits.callTimeoutMs, "timeout", { min: 1, max: limits.callTimeoutMsMax }),
    redirects: checkCount(redirects ?? 0, "redirects", 0, limits.callRedirectsMax),
  };
}
