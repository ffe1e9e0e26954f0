// A call is an HTTP request that must be made. A job of the kind `call` does the work, with the HTTP client as its handler, so
// due times, claims, retries, limits, cancellation and recovery are those of jobs.
//
//   scheduled ──► running ──► succeeded        (an answer of 2xx)
//       │            ├──────► failed           (another answer, or none, and no attempt is left)
//       └────────────┴──────► cancelled
//
// Between two attempts a call stays `running`. Each attempt is a row of `call_attempt` that is on disk before the socket opens,
// with the id of its run. A unique index allows one open attempt. The transaction that ends the job also ends the attempt and
// the call (attempt/settled.ts).
//
// The request that is sent (`content`) is sealed with a key from outside the book; what people see (`request`) is redacted.

export type CallStatus = "scheduled" | "running" | "succeeded" | "failed" | "cancelled";

export const callStatuses: readonly CallStatus[] = ["scheduled", "running", "succeeded", "failed", "cancelled"];

export const methods = ["GET", "POST", "PUT", "DELETE", "PATCH"] as const;
export type Method = (typeof methods)[number];

export type CallRow = {
  seq: number;
  tenant_id: string;
  id: string;
  name: string;
  status: CallStatus;
  submitted_at: number;
  due_at: number;
  started_at: number | null;
  finished_at: number | null;
  method: Method;
  host: string;
  /** JSON of `ShownRequest`: redacted, for people. */
  request: string;
  /** What is sent: sealed when `key_id` is set. */
  content: string;
  key_id: string | null;
  /** JSON of `CallPolicy`. */
  policy: string;
  /** JSON of `CallOutcome`. */
  outcome: string | null;
  correlation_id: string;
  idempotency_key: string | null;
  /** The Idempotency-Key of every attempt. */
  send_key: string;
  resend_of: string | null;
};

/** How often and for how long a call is tried; a resend uses it again. */
export type CallPolicy = {
  readonly attempts: number;
  /** JSON of a `Backoff`, or null for the engine's own. */
  readonly backoff: string | null;
  readonly timeoutMs: number;
  readonly redirects: number;
};

export type ErrorKind =
  | ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "redirect")
  | ("refused" | "status" | "lost" | "cancelled" | "shutdown" | "internal");

/** How a call ended, for its row and its facts. */
export type CallOutcome = {
  readonly responseStatus: number | null;
  readonly errorKind: ErrorKind | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly durationMs: number | null;
};

/** The kind and the name of the jobs that make calls. */
export const callKind = "call";
export const callJobName = "daybook.call";
/** The queue of calls. Each tenant has its own, and tenants take turns. */
export const callQueue = "calls";

/** What binds sealed content to its call: it opens only for this one. */
export function sealedFor(tenant: string, id: string): string {
  return `call ${id}\n${tenant}`;
}

/** The key of the limit on a tenant's calls to one host. */
export function hostKey(host: string): string {
  return `${callJobName}\n${host}`;
}

export function hostOfKey(key: string): string {
  return key.slice(callJobName.length + 1);
}
