// Reads calls: one with its attempts, a page of them, or why one has not been sent. No column that is read here holds a secret.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkPage, cutPage, notACursor, type Page } from "../core/page.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown, refuseUnknownFilter } from "../core/suggest.ts";
import { timeMs, type TimeInput, isoTime } from "../core/time.ts";
import { sql, joinSql, rawSql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { explainJob, type Explanation } from "../jobs/explain/explain.ts";
import {
  callKind,
  callStatuses,
  notFound,
  type CallOutcome,
  type CallPolicy,
  type CallStatus,
  type ErrorKind,
} from "./call.ts";
import type { ShownRequest } from "./request/content.ts";

export type CallRecord = {
  readonly id: string;
  readonly name: string;
  readonly status: CallStatus;
  readonly submittedAt: number;
  readonly dueAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly host: string;
  /** Redacted. */
  readonly request: ShownRequest;
  /** Whether the request is sealed with a key from outside the book. */
  readonly sealed: boolean;
  readonly policy: CallPolicy;
  readonly outcome: CallOutcome | null;
  readonly tags: readonly string[];
  readonly correlationId: string;
  readonly idempotencyKey: string | null;
  /** The Idempotency-Key that every attempt sends. */
  readonly sendKey: string;
  readonly resendOf: string | null;
  /** The job that sends it; null when the call has ended. `jobs.explain` says what the job waits for. */
  readonly jobId: string | null;
};

export type CallDetails = CallRecord & { readonly attempts: readonly CallAttempt[] };

export type CallAttempt = {
  /** The id of its run. */
  readonly id: string;
  readonly number: number;
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly method: string;
  readonly url: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string | null;
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | null;
    /** The body is bytes, written as base64. */
    readonly base64: boolean;
    readonly bytes: number;
    readonly truncated: boolean;
  } | null;
  /** Where redirects led. */
  readonly hops: readonly string[];
  readonly error: { readonly kind: ErrorKind; readonly message: string } | null;
  readonly phases: {
    readonly dnsMs: number | null;
    readonly connectMs: number | null;
    readonly tlsMs: number | null;
    readonly firstByteMs: number | null;
    readonly totalMs: number | null;
  };
};

const selectCalls = sql`select call.id, call.name, call.status, call.submitted_at as "submittedAt", call.due_at as "dueAt",
    call.started_at as "startedAt", call.finished_at as "finishedAt", call.host, call.request,
    case when call.key_id is null then 0 else 1 end as sealed, call.policy, call.outcome,
    (select string_agg(tag, '\n' order by tag) from daybook_call_tag call_tag
      where call_tag.tenant_id = call.tenant_id and call_tag.call_id = call.id) as tags,
    call.correlation_id as "correlationId", call.idempotency_key as "idempotencyKey", call.send_key as "sendKey",
    call.resend_of as "resendOf", job.id as "jobId", call.seq as ".seq"
  from daybook_call call left join daybook_line line on call.finished_at is null
    and line.kind = ${callKind} and line.kind_seq = call.seq and line.kind is not null
  left join daybook_job job on job.seq = line.seq`;

type CallRead = Omit<CallRecord, "request" | "sealed" | "policy" | "outcome" | "tags"> & {
  readonly request: string;
  readonly sealed: number;
  readonly policy: string;
  readonly outcome: string | null;
  readonly tags: string | null;
  readonly ".seq": number;
};

function toCall({ ".seq": _seq, ...row }: CallRead): CallRecord {
  return {
    ...row,
    request: JSON.parse(row.request) as ShownRequest,
    sealed: row.sealed === 1,
    policy: JSON.parse(row.policy) as CallPolicy,
    outcome: row.outcome === null ? null : (JSON.parse(row.outcome) as CallOutcome),
    tags: row.tags === null ? [] : row.tags.split("\n"),
  };
}

const selectAttempts = sql`select id, number, started_at as "startedAt", finished_at as "finishedAt", method, url,
    request_headers as "requestHeaders", request_body as "requestBody", response_status as "status",
    response_headers as "headers", response_body as "body", response_base64 as "base64", response_bytes as "bytes",
    response_truncated as "truncated", hops, error_kind as "kind", error_message as "message", dns_ms as "dnsMs",
    connect_ms as "connectMs", tls_ms as "tlsMs", first_byte_ms as "firstByteMs", total_ms as "totalMs"
  from daybook_call_attempt`;

type AttemptRead = Omit<CallAttempt, "requestHeaders" | "response" | "hops" | "error" | "phases"> &
  CallAttempt["phases"] & {
    readonly requestHeaders: string;
    readonly status: number | null;
    readonly headers: string | null;
    readonly body: string | null;
    readonly base64: number;
    readonly bytes: number | null;
    readonly truncated: number;
    readonly hops: string | null;
    readonly kind: ErrorKind | null;
    readonly message: string | null;
  };

function toAttempt(row: AttemptRead): CallAttempt {
  const { status, headers, body, base64, bytes, truncated, hops, kind, message, ...rest } = row;
  const { dnsMs, connectMs, tlsMs, firstByteMs, totalMs, ...attempt } = rest;
  return {
    ...attempt,
    requestHeaders: JSON.parse(row.requestHeaders) as Record<string, string>,
    response:
      status === null
        ? null
        : {
            status,
            headers: JSON.parse(headers ?? "{}") as Record<string, string>,
            body,
            base64: base64 === 1,
            bytes: bytes ?? 0,
            truncated: truncated === 1,
          },
    hops: hops === null ? [] : (JSON.parse(hops) as string[]),
    error: kind === null ? null : { kind, message: message ?? "" },
    phases: { dnsMs, connectMs, tlsMs, firstByteMs, totalMs },
  };
}

export type CallFilter = {
  readonly status?: CallStatus | readonly CallStatus[];
  readonly tag?: string;
  /** Calls with at least one tag of `any`, and with every tag of `all`. */
  readonly tags?: { readonly any?: readonly string[]; readonly all?: readonly string[] };
  /** As in the URL, with the port unless it is the scheme's own: `api.example.com`, `localhost:8080`. */
  readonly host?: string;
  readonly name?: string;
  readonly correlationId?: string;
  /** Due at or after this time. */
  readonly from?: TimeInput;
  /** Due before this time. */
  readonly to?: TimeInput;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
};

export type CallPage = Page<CallRecord>;

const filters = ["status", "tag", "tags", "host", "name", "correlationId", "from", "to", "limit", "after"] as const;

/** The newest first. */
export async function listCalls(store: Store, tenant: string, filter: CallFilter): Promise<CallPage> {
  refuseUnknownFilter(filter, filters, "the list of calls");
  const { limit, after } = checkPage(filter);
  if (after !== null && after < 1) throw notACursor(filter.after);
  const rows = await store.readHeavy<CallRead>(sql`${selectCalls}
    where call.tenant_id = ${tenant} and call.seq < ${after ?? Number.MAX_SAFE_INTEGER} ${conditions(tenant, filter)}
    order by call.seq desc limit ${limit + 1}`);
  return cutPage(rows, limit, (row) => row[".seq"], toCall);
}

function conditions(tenant: string, filter: CallFilter): Sql {
  const { status, tag, tags, host, name, correlationId, from, to } = filter;
  const wanted = status === undefined ? [] : [status].flat();
  for (const each of wanted) {
    if (!callStatuses.includes(each)) throw invalid(`status ${quote(each)} is not known: ${callStatuses.join(", ")}`);
  }
  const parts: Sql[] = [];
  if (wanted.length > 0) parts.push(rawSql(`and call.status in (${wanted.map((each) => `'${each}'`).join(", ")})`));
  if (tag !== undefined) parts.push(hasAny(tenant, [tag]));
  if (tags !== undefined) parts.push(...byTags(tenant, tags));
  if (host !== undefined) parts.push(sql`and call.host = ${host}`);
  if (name !== undefined) parts.push(sql`and call.name = ${name}`);
  if (correlationId !== undefined) parts.push(sql`and call.correlation_id = ${correlationId}`);
  if (from !== undefined) parts.push(sql`and call.due_at >= ${timeMs(from, "from")}`);
  if (to !== undefined) parts.push(sql`and call.due_at < ${timeMs(to, "to")}`);
  return joinSql(parts);
}

function byTags(tenant: string, tags: NonNullable<CallFilter["tags"]>): Sql[] {
  const wrong = invalid(`tags is { any: [...] } or { all: [...] } with 1 to ${limits.tagsMax} texts each`);
  if (typeof tags !== "object" || tags === null) throw wrong;
  refuseUnknown(tags, ["any", "all"], "tags");
  const { any, all } = tags;
  for (const list of [any ?? all, all ?? any]) {
    if (!Array.isArray(list) || list.length === 0 || list.length > limits.tagsMax) throw wrong;
    if (!list.every((tag) => typeof tag === "string")) throw wrong;
  }
  return [...(any === undefined ? [] : [hasAny(tenant, any)]), ...(all ?? []).map((tag) => hasAny(tenant, [tag]))];
}

function hasAny(tenant: string, tags: readonly string[]): Sql {
  return sql`and call.id in (select call_id from daybook_call_tag call_tag
    where call_tag.tenant_id = ${tenant} and call_tag.tag ${anyOf("text", tags)})`;
}

export async function findCall(store: Store, tenant: string, id: string): Promise<CallDetails> {
  const [[row], attempts] = await Promise.all([
    store.read<CallRead>(sql`${selectCalls} where call.tenant_id = ${tenant} and call.id = ${id}`),
    store.read<AttemptRead>(sql`${selectAttempts} where tenant_id = ${tenant} and call_id = ${id}
      order by number limit ${limits.pageMax}`),
  ]);
  if (row === undefined) throw notFound(id);
  return { ...toCall(row), attempts: attempts.map(toAttempt) };
}

export type CallExplanation = Omit<Explanation, "status"> & { readonly status: CallStatus };

export async function explainCall(store: Store, tenant: string, id: string): Promise<CallExplanation> {
  const { status, jobId, host, outcome } = await findCall(store, tenant, id);
  if (jobId === null) {
    const how = outcome?.error ?? `it was answered with status ${outcome?.responseStatus ?? "?"}`;
    return { id, status, reason: status, because: [`It is ${status}: ${how}.`] };
  }
  const job = await explainJob({ store, kinds: {} }, { tenant, id: jobId });
  const [known] = await store.read<{ failures: number; probe_at: number | null; probes: number }>(
    sql`select call_host.failures, call_host.probe_at, case when call_host.probe_call_seq = call.seq then 1 else 0 end
        as probes
      from daybook_call call cross join daybook_call_host call_host where call.tenant_id = ${tenant} and call.id = ${id}
        and call_host.tenant_id = ${tenant} and call_host.host = ${host}`,
  );
  const probes = known?.probes === 1 && job.reason === "time";
  if (job.reason !== "order" && !probes) return { id, status, reason: job.reason, because: job.because };
  const who = probes ? "This one" : "One of them";
  const when = known?.probe_at == null ? "" : ` ${who} tries it from ${isoTime(known.probe_at)} on.`;
  const because =
    known === undefined || known.failures === 0
      ? `The host ${host} answers again, and its calls follow a few at a time.`
      : `The host ${host} does not answer, ${known.failures} times in a row, so its calls wait.${when}`;
  return { id, status, reason: "host", because: [because] };
}
