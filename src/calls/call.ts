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
// What is sent (`content`) and what comes back is sealed with a key from outside the book; what everybody sees (`request`) is its
// shape (request/kept.ts).
import { notFound, type DaybookError } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { Kept } from "./request/kept.ts";

export const callStatuses = ["scheduled", "running", "succeeded", "failed", "cancelled"] as const;
export type CallStatus = (typeof callStatuses)[number];

export const methods = ["GET", "POST", "PUT", "DELETE", "PATCH"] as const;
export type Method = (typeof methods)[number];

/** What statements read of a call. */
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
  /** JSON of `ShownRequest`, with what was said hidden. */
  request: string;
  /** What is sent: sealed when `key_id` is set, null once it has left the book. */
  content: string | null;
  key_id: string | null;
  kept: Kept;
  /** Of a request that leaves the book: by this it is known again. */
  fingerprint: string | null;
  /** JSON of `CallPolicy`. */
  policy: string;
  correlation_id: string;
  /** The Idempotency-Key of every attempt. */
  send_key: string;
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

/** The key of the limit on a tenant's calls to one host. */
export function hostKey(host: string): string {
  return `${callJobName}\n${host}`;
}

export function hostOfKey(key: string): string {
  return key.slice(callJobName.length + 1);
}

export function noSuchCall(id: string): DaybookError {
  return notFound(`there is no call ${id}`, { id });
}

/** A fact about a call, stated to the rooms above in the transaction in which it becomes true. */
type CallFact = {
  readonly topic: `call.${"submitted" | "started" | "succeeded" | "failed" | "cancelled"}`;
  readonly tenant: string;
  readonly payload: {
    readonly id: string;
    readonly name: string;
    readonly method: string;
    readonly host: string;
    readonly correlationId: string;
    readonly dueAt: number;
    readonly outcome: CallOutcome | null;
  };
};

/** Where facts about calls go: the room of events, wired at the front door. */
export type CallAnnounce = {
  /** Whether any tenant has a listener for one of these topics. */
  hears(tx: Tx, topics: readonly CallFact["topic"][]): Awaitable<boolean>;
  onFact(tx: Tx, fact: CallFact): Awaitable<void>;
};

type Told = Pick<CallRow, "tenant_id" | "id" | "name" | "method" | "host" | "correlation_id" | "due_at">;

export type ToTell = {
  readonly topic: CallFact["topic"];
  readonly row: Told;
  readonly outcome?: CallOutcome | null;
};

/** Announces facts inside the transaction, and states them to subscribers of `callChanged` once it has committed. */
export async function tellCalls(tx: Tx, announce: CallAnnounce | undefined, told: readonly ToTell[]): Promise<void> {
  if (told.length === 0) return;
  const topics = [...new Set(told.map(({ topic }) => topic))];
  const kept = announce !== undefined && (await announce.hears(tx, topics)) ? announce : undefined;
  if (kept === undefined && !callChanged.heard) return;
  for (const each of told) {
    const fact = toFact(each);
    await kept?.onFact(tx, fact);
    if (callChanged.heard) tx.afterCommit(() => callChanged.state(fact));
  }
}

function toFact({ topic, row, outcome = null }: ToTell): CallFact {
  return {
    topic,
    tenant: row.tenant_id,
    payload: {
      id: row.id,
      name: row.name,
      method: row.method,
      host: row.host,
      correlationId: row.correlation_id,
      dueAt: row.due_at,
      outcome,
    },
  };
}

/** A call was submitted, started or ended, and that is on disk. */
export const callChanged = defineFact<CallFact>("call.changed");
/** A destination was refused. The reason is for the operator; a tenant learns only that it was refused. */
export const callRefused = defineFact<{ tenant: string; id: string; host: string; reason: string }>("call.refused");
