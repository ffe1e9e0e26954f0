// Writes an attempt to disk before its socket opens, and only if this process still owns the run: whatever happens then, the
// book knows that the request may have been sent. Attempts that begin at the same time share a transaction.
import { DaybookError, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { together } from "../../storage/unit.ts";
import { anyOf, forShareOf, greatest, insertInto, rowSet, type Nullable, type RowOf } from "../../storage/word.ts";
import { advise } from "../../core/retry.ts";
import type { JobInfo } from "../../jobs/run/run.ts";
import { passing } from "../../jobs/worker/runs.ts";
import { type CallRow, type CallPolicy, type CallAnnounce, callKind, tellCalls } from "../call.ts";

import {
  openRequest,
  outgoingOf,
  sealedAway,
  type Outgoing,
  type RequestContent,
  type ShownRequest,
} from "../request/content.ts";
import { markWith, shownHeaders, type Mark, scrubber, type Scrub } from "../request/redact.ts";
import type { CallSettings } from "../room.ts";

type BeginsParts = {
  readonly settings: Pick<CallSettings, "keys">;
  readonly announce: CallAnnounce | undefined;
};

/** The job and the run that begin an attempt. */
type Beginner = Pick<JobInfo, "tenant" | "id" | "runId">;

export function createBegins(parts: BeginsParts) {
  const write = together(async (tx, jobs: readonly Beginner[]) => {
    const begun = await beginAll(tx, parts, jobs);
    return jobs.map(({ runId }) => begun.get(runId));
  }, limits.claimJobsMax);
  return {
    /** Resolves with the request once the attempt is on disk. Its errors say whether to try again. */
    async begin(store: Store, job: Beginner): Promise<ReadySend> {
      const begun = await write(store, job).catch((error: unknown) => {
        throw notSent(error);
      });
      if (begun === undefined) throw new DaybookError("conflict", "the call is no longer this process's to send");
      if (begun instanceof Error) throw begun;
      return begun;
    },
  };
}

const busyRetryMs = 1000;

// The book was busy or away and nothing was sent, so the attempt does not count. Only errors that pass: others would be tried
// for ever.
function notSent(error: unknown): unknown {
  if (!isDaybookError(error) || !passing.has(error.code)) return error;
  return advise(error, { counts: false, atLeastMs: busyRetryMs });
}

type Found = Sendable & Pick<CallRow, "seq" | "status"> & { readonly run_id: string; readonly number: number };

/** By run: the request to send, or the reason why none is sent. A run that this process no longer owns is missing. */
async function beginAll(
  tx: Tx,
  { settings, announce }: BeginsParts,
  jobs: readonly Beginner[],
): Promise<Map<string, ReadySend | Error>> {
  const begun = new Map<string, ReadySend | Error>();
  const rows: Nullable<RowOf<typeof attemptColumns>>[] = [];
  const first: Found[] = [];
  for (const call of await findCalls(tx, jobs)) {
    const { run_id: runId, status } = call;
    const ready = status === "scheduled" || status === "running" ? readySend(settings, call, tx.now) : hasEnded(call);
    begun.set(runId, ready);
    if (ready instanceof Error) continue;
    if (status === "scheduled") first.push(call);
    const { url, headers, body } = ready.shown;
    rows.push({
      tenant_id: call.tenant_id,
      call_id: call.id,
      id: runId,
      number: call.number,
      started_at: tx.now,
      method: call.method,
      url,
      request_headers: headers,
      request_body: body,
    });
  }
  if (rows.length === 0) return begun;
  await tx.run(insertInto("daybook_call_attempt", attemptColumns, rows));
  if (first.length === 0) return begun;
  const seqs = first.map(({ seq }) => seq);
  await tx.run(sql`update daybook_call set status = 'running', started_at = ${greatest}(${tx.now}, submitted_at, due_at)
    where seq ${anyOf("integer", seqs)} and status = 'scheduled'`);
  const told = first.map((row) => ({ topic: "call.started", row }) as const);
  await tellCalls(tx, announce, told);
  return begun;
}

// Finds calls by the job's row and not by its params, which an operator may have edited. It locks the job and not the
// call: a transaction that ends a call locks its job first.
async function findCalls(tx: Tx, jobs: readonly Beginner[]): Promise<Found[]> {
  const rows = jobs.map(({ tenant, id, runId }) => ({ tenant_id: tenant, id, run_id: runId }));
  const columns = { tenant_id: "text", id: "text", run_id: "text" } as const;
  return tx.all<Found>(sql`select mine.run_id, call.seq, call.tenant_id, call.id, call.name, call.status, call.method,
      call.host, call.correlation_id, call.due_at, call.request, call.content, call.key_id, call.policy, call.send_key,
      (select coalesce(max(number), 0) + 1 from daybook_call_attempt call_attempt
        where call_attempt.tenant_id = call.tenant_id and call_attempt.call_id = call.id) as number
    from (select line.seq, job.tenant_id, line.kind_seq, line.run_id
      from ${rowSet("v", columns, rows)} cross join daybook_job job cross join daybook_line line
      where job.tenant_id = v.tenant_id and job.id = v.id and line.seq = job.seq and line.run_id = v.run_id
        and line.started_at is not null and line.kind = ${callKind} order by line.seq ${forShareOf("line")}) as mine
    cross join daybook_call call where call.seq = mine.kind_seq and call.tenant_id = mine.tenant_id`);
}

const attemptColumns = {
  tenant_id: "text",
  call_id: "text",
  id: "text",
  number: "integer",
  started_at: "integer",
  method: "text",
  url: "text",
  request_headers: "text",
  request_body: "text",
} as const;

// An operator retried the job of a call that had ended.
function hasEnded({ id, status }: Pick<CallRow, "id" | "status">): Error {
  const error = new DaybookError("conflict", `call ${id} is ${status}: send it again with resend`);
  return advise(error, { again: false });
}

type Sendable = Pick<
  CallRow,
  | ("tenant_id" | "id" | "name" | "method" | "host" | "correlation_id" | "due_at" | "request" | "content" | "key_id")
  | ("policy" | "send_key")
>;

export type ReadySend = {
  readonly call: Sendable;
  readonly outgoing: Outgoing;
  readonly policy: CallPolicy;
  /** What the attempt's row keeps of it, redacted; the headers are JSON. */
  readonly shown: { readonly url: string; readonly headers: string; readonly body: string | null };
  readonly mark: Mark;
  readonly scrub: Scrub;
};

/** The request of a call, opened and signed; or why it cannot be sent, with advice for the next try. */
function readySend({ keys }: Pick<CallSettings, "keys">, call: Sendable, now: number): ReadySend | Error {
  const content = openContent(keys, call);
  if (content instanceof Error) return content;
  const mark = markWith(keys, call.tenant_id);
  const outgoing = outgoingOf(content, { id: call.send_key, now });
  // The url and the body were redacted at submit.
  const { url, body } = JSON.parse(call.request) as ShownRequest;
  return {
    call,
    outgoing,
    mark,
    scrub: scrubber(content),
    policy: JSON.parse(call.policy) as CallPolicy,
    shown: { url, headers: JSON.stringify(shownHeaders(outgoing.headers, mark)), body },
  };
}

const keyRetryMs = 60_000;

function openContent(keys: CallSettings["keys"], call: Sendable): RequestContent | Error {
  try {
    return openRequest(keys, call);
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "unavailable") return advise(error as Error, { again: false });
    // Another process may have the key, so the call is neither sent nor failed.
    return advise(new DaybookError("unavailable", sealedAway(call)), { counts: false, atLeastMs: keyRetryMs });
  }
}
