// The attempt is on disk before its socket opens, and only if the run is still ours: whatever happens then, the book knows
// that the request may have been sent. Those that begin at the same time are written down together.
import { DaybookError, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { together } from "../../storage/together.ts";
import { anyOf, eachRow, forShareOf, greatest, rowSet } from "../../storage/word.ts";
import { advise } from "../../jobs/advice.ts";
import type { JobInfo } from "../../jobs/context.ts";
import { passing } from "../../jobs/worker/pending.ts";
import { callKind, type CallRow } from "../call.ts";
import { tellCalls, type CallEars } from "../facts.ts";
import type { CallSettings } from "../settings.ts";
import { readySend, type ReadySend, type Sendable } from "./ready.ts";

export type BeginsParts = { readonly settings: Pick<CallSettings, "keys">; readonly ears: CallEars | undefined };

/** Who begins: a job, its run, and whose they are. */
export type Beginner = Pick<JobInfo, "tenant" | "id" | "runId">;

export type Begins = ReturnType<typeof createBegins>;

export function createBegins(parts: BeginsParts) {
  const write = together(async (tx, jobs: readonly Beginner[]) => {
    const begun = await beginAll(tx, parts, jobs);
    return jobs.map(({ runId }) => begun.get(runId));
  }, limits.claimJobsMax);
  return {
    /** Resolves, with what is to be sent, once the attempt is on disk. What it throws says whether to try again. */
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

const askAgainMs = 1000;

// The book was busy or away, and nothing was sent: that is no attempt. What does not pass would be tried for ever.
function notSent(error: unknown): unknown {
  if (!isDaybookError(error) || !passing.has(error.code)) return error;
  return advise(error, { counts: false, atLeastMs: askAgainMs });
}

type Found = Sendable & Pick<CallRow, "seq" | "status"> & { readonly run_id: string; readonly number: number };

/** What is to be sent for each run that is still ours, or why nothing is. */
async function beginAll(
  tx: Tx,
  { settings, ears }: BeginsParts,
  jobs: readonly Beginner[],
): Promise<Map<string, ReadySend | Error>> {
  const begun = new Map<string, ReadySend | Error>();
  const rows: Parameters<typeof insertAttempts>[1][number][] = [];
  const first: Found[] = [];
  for (const call of await findCalls(tx, jobs)) {
    const { run_id: runId, status } = call;
    const ready = status === "scheduled" || status === "running" ? readySend(settings, call, tx.now) : hasEnded(call);
    begun.set(runId, ready);
    if (ready instanceof Error) continue;
    if (status === "scheduled") first.push(call);
    const { url, headers, body } = ready.shown;
    rows.push({
      ...{ tenant_id: call.tenant_id, call_id: call.id, id: runId, number: call.number, started_at: tx.now },
      ...{ method: call.method, url, request_headers: headers, request_body: body },
    });
  }
  if (rows.length === 0) return begun;
  await insertAttempts(tx, rows);
  if (first.length === 0) return begun;
  await tx.run(sql`update daybook_call set status = 'running', started_at = ${greatest}(${tx.now}, submitted_at, due_at)
    where seq ${anyOf(
      "integer",
      first.map(({ seq }) => seq),
    )} and status = 'scheduled'`);
  await tellCalls(
    tx,
    ears,
    first.map((row) => ({ topic: "call.started", row })),
  );
  return begun;
}

// By the job's own row and not by its params, which somebody may have written by hand. The job is locked, the call is not:
// whoever ends a call has its job first.
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

type AttemptRow = {
  readonly tenant_id: string;
  readonly call_id: string;
  readonly id: string;
  readonly number: number;
  readonly started_at: number;
  readonly method: string;
  readonly url: string;
  readonly request_headers: string;
  readonly request_body: string | null;
};

async function insertAttempts(tx: Tx, rows: readonly AttemptRow[]): Promise<void> {
  const ids = { tenant_id: "text", call_id: "text", id: "text", number: "integer", started_at: "integer" } as const;
  const sent = { method: "text", url: "text", request_headers: "text", request_body: "text" } as const;
  await tx.run(sql`insert into daybook_call_attempt (tenant_id, call_id, id, number, started_at, method, url, request_headers,
    request_body) ${eachRow({ ...ids, ...sent }, rows)}`);
}

// Somebody continued its job by hand.
function hasEnded({ id, status }: Pick<CallRow, "id" | "status">): Error {
  const error = new DaybookError("conflict", `call ${id} is ${status}: send it again with resend`);
  return advise(error, { again: false });
}
