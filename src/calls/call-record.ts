// A call as its user sees it: nothing secret is in the columns that are read here.
import { sql } from "../storage/sql.ts";
import { callKind, type CallOutcome, type CallPolicy, type CallRow, type CallStatus, type ErrorKind } from "./call.ts";
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
  /** Whether it is kept sealed. */
  readonly sealed: boolean;
  readonly policy: CallPolicy;
  readonly outcome: CallOutcome | null;
  readonly tags: readonly string[];
  readonly correlationId: string;
  readonly idempotencyKey: string | null;
  /** The Idempotency-Key that every attempt sends. */
  readonly sendKey: string;
  readonly resendOf: string | null;
  /** The job that will send it, or does; null when it has ended. `jobs.explain` says what it waits for. */
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

export const selectCalls = sql`select call.seq, call.id, call.name, call.status, call.submitted_at, call.due_at,
    call.started_at, call.finished_at, call.host, call.request, call.key_id, call.policy, call.outcome,
    call.correlation_id, call.idempotency_key, call.send_key, call.resend_of, job.id as job_id,
    (select string_agg(tag, '\n' order by tag) from daybook_call_tag call_tag
      where call_tag.tenant_id = call.tenant_id and call_tag.call_id = call.id) as tags
  from daybook_call call left join daybook_line line on call.finished_at is null
    and line.kind = ${callKind} and line.kind_seq = call.seq and line.kind is not null
  left join daybook_job job on job.seq = line.seq`;

export type ListedRow = Omit<CallRow, "tenant_id" | "content" | "method"> & {
  readonly job_id: string | null;
  readonly tags: string | null;
};

export function toCall(row: ListedRow): CallRecord {
  return {
    ...{ id: row.id, name: row.name, status: row.status, submittedAt: row.submitted_at, dueAt: row.due_at },
    ...{ startedAt: row.started_at, finishedAt: row.finished_at, host: row.host, sealed: row.key_id !== null },
    request: JSON.parse(row.request) as ShownRequest,
    policy: JSON.parse(row.policy) as CallPolicy,
    outcome: row.outcome === null ? null : (JSON.parse(row.outcome) as CallOutcome),
    tags: row.tags === null ? [] : row.tags.split("\n"),
    ...{ correlationId: row.correlation_id, idempotencyKey: row.idempotency_key, sendKey: row.send_key },
    ...{ resendOf: row.resend_of, jobId: row.job_id },
  };
}

export const selectAttempts = sql`select id, number, started_at, finished_at, method, url, request_headers, request_body,
    response_status, response_headers, response_body, response_base64, response_bytes, response_truncated, hops,
    error_kind, error_message, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms from daybook_call_attempt`;

export type AttemptRow = {
  readonly id: string;
  readonly number: number;
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly method: string;
  readonly url: string;
  readonly request_headers: string;
  readonly request_body: string | null;
  readonly response_status: number | null;
  readonly response_headers: string | null;
  readonly response_body: string | null;
  readonly response_base64: number;
  readonly response_bytes: number | null;
  readonly response_truncated: number;
  readonly hops: string | null;
  readonly error_kind: ErrorKind | null;
  readonly error_message: string | null;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
};

export function toAttempt(row: AttemptRow): CallAttempt {
  const { error_kind: kind, response_status: status } = row;
  return {
    ...{ id: row.id, number: row.number, startedAt: row.started_at, finishedAt: row.finished_at, method: row.method },
    ...{ url: row.url, requestBody: row.request_body },
    requestHeaders: JSON.parse(row.request_headers) as Record<string, string>,
    response:
      status === null
        ? null
        : {
            ...{ status, body: row.response_body, base64: row.response_base64 === 1, bytes: row.response_bytes ?? 0 },
            headers: JSON.parse(row.response_headers ?? "{}") as Record<string, string>,
            truncated: row.response_truncated === 1,
          },
    hops: row.hops === null ? [] : (JSON.parse(row.hops) as string[]),
    error: kind === null ? null : { kind, message: row.error_message ?? "" },
    phases: {
      ...{ dnsMs: row.dns_ms, connectMs: row.connect_ms, tlsMs: row.tls_ms, firstByteMs: row.first_byte_ms },
      totalMs: row.total_ms,
    },
  };
}
