// Writes an attempt to disk before its socket opens, and only if this process still owns the run: whatever happens then, the
// book knows that the request may have been sent. Attempts that begin at the same time share a transaction.
import { conflict, DaybookError, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { together } from "../../storage/unit.ts";
import { anyOf, forShareOf, greatest, insertInto, rowSet, type Nullable, type RowOf } from "../../storage/word.ts";
import { advise } from "../../core/retry.ts";
import type { JobInfo } from "../../jobs/run/run.ts";
import { passing } from "../../jobs/worker/runs.ts";
import { type CallRow, type CallPolicy, type CallAnnounce, callKind, tellCalls } from "../call.ts";
import { outgoingOf, type Outgoing } from "../request/content.ts";
import { openRequest } from "../request/kept.ts";
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

type Found = Sendable & Pick<CallRow, "seq"> & { readonly run_id: string; readonly number: number };

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
    const { run_id: runId } = call;
    const ready = readySend(settings, call, tx.now);
    begun.set(runId, ready);
    if (ready instanceof Error) continue;
    if (call.status === "scheduled") first.push(call);
    rows.push({ tenant_id: call.tenant_id, call_id: call.id, id: runId, number: call.number, started_at: tx.now });
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
      call.host, call.correlation_id, call.due_at, call.content, call.key_id, call.kept, call.policy, call.send_key,
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
} as const;

type Sendable = Pick<
  CallRow,
  | ("tenant_id" | "id" | "name" | "status" | "method" | "host" | "correlation_id" | "due_at" | "content" | "key_id")
  | ("kept" | "policy" | "send_key")
>;

export type ReadySend = {
  readonly call: Sendable;
  readonly outgoing: Outgoing;
  readonly policy: CallPolicy;
};

const keyRetryMs = 60_000;

/** The request of a call, opened and signed; or why it cannot be sent, with advice for the next try. */
function readySend({ keys }: Pick<CallSettings, "keys">, call: Sendable, now: number): ReadySend | Error {
  try {
    const content = call.status === "scheduled" || call.status === "running" ? openRequest(keys, call) : undefined;
    // An operator retried the job of a call that had ended.
    if (content === undefined) throw conflict(`call ${call.id} is ${call.status}: send it again with resend`, {});
    const outgoing = outgoingOf(content, { id: call.send_key, now });
    return { call, outgoing, policy: JSON.parse(call.policy) as CallPolicy };
  } catch (error) {
    // Another process may have the key, so the call is neither sent nor failed.
    const isElsewhere = isDaybookError(error) && error.code === "unavailable";
    return advise(error as Error, isElsewhere ? { counts: false, atLeastMs: keyRetryMs } : { again: false });
  }
}
