// The end of a call's job: its attempt ends with it, and the call too unless it is tried again, in one transaction with
// whatever ended the job: its owner, a recovery, a timeout, a cancel.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { forUpdate, greatest } from "../../storage/word.ts";
import type { JobEnded } from "../../jobs/hooks.ts";
import type { JobRow } from "../../jobs/job.ts";
import type { CallOutcome, CallRow, ErrorKind } from "../call.ts";
import { noteHost } from "../circuit.ts";
import { tellCall } from "../facts.ts";
import type { CallsRoom } from "../room.ts";
import { snippetOf, type AttemptEnd } from "./end.ts";
import { hostIsThere } from "./verdict.ts";

type Call = Pick<
  CallRow,
  | ("seq" | "tenant_id" | "id" | "name" | "status" | "method" | "host" | "correlation_id" | "due_at" | "submitted_at")
  | "started_at"
>;

export async function callEnded(room: CallsRoom, tx: Tx, job: JobRow, ended: JobEnded): Promise<void> {
  const call = await tx.get<Call>(sql`select seq, tenant_id, id, name, status, method, host, correlation_id, due_at,
      submitted_at, started_at from call
    where seq = ${job.kind_seq} and tenant_id = ${job.tenant_id} ${forUpdate}`);
  if (call === undefined) return;
  const runId = ended.run?.id;
  const end = runId === undefined ? undefined : room.heard.get(runId);
  if (runId !== undefined) {
    await closeAttempt(tx, call, runId, end ?? unheard(ended));
    // Not before: a transaction may be run again.
    tx.afterCommit(() => room.heard.delete(runId));
  }
  const isThere = end === undefined ? undefined : hostIsThere(end);
  if (isThere !== undefined) await noteHost(tx, { tenant: call.tenant_id, host: call.host }, isThere);
  if (ended.retriedBy !== null || (call.status !== "scheduled" && call.status !== "running")) return;
  await endCall(room, tx, call, ended, end);
}

async function endCall(room: CallsRoom, tx: Tx, call: Call, ended: JobEnded, end?: AttemptEnd): Promise<void> {
  const status = statusAfter(ended);
  const finishedAt = Math.max(tx.now, call.started_at ?? 0, call.submitted_at);
  // What could not even be opened was begun all the same.
  const startedAt = call.started_at ?? (status === "cancelled" ? null : Math.max(finishedAt, call.due_at));
  const last = ended.run === null ? undefined : (end ?? unheard(ended));
  const outcome: CallOutcome = {
    responseStatus: last?.status ?? null,
    errorKind: status === "succeeded" ? null : (last?.errorKind ?? "cancelled"),
    error: status === "succeeded" ? null : (last?.errorMessage ?? "it was cancelled before it was sent"),
    attempts: call.started_at === null ? 0 : ended.attempt,
    durationMs: last === undefined ? null : Math.round(last.totalMs),
  };
  await tx.run(sql`update call set status = ${status}, started_at = ${startedAt},
      finished_at = ${Math.max(finishedAt, startedAt ?? 0)}, outcome = ${JSON.stringify(outcome)}
    where seq = ${call.seq} and tenant_id = ${call.tenant_id} and finished_at is null`);
  await tellCall(tx, room.onFact, `call.${status}`, call, { outcome, snippet: snippetOf(end) });
}

function statusAfter({ status }: JobEnded): "succeeded" | "failed" | "cancelled" {
  if (status === "completed") return "succeeded";
  return status === "failed" ? "failed" : "cancelled";
}

/** The end of an attempt of which nothing came back to this process. */
function unheard({ run }: JobEnded): AttemptEnd {
  const [errorKind, errorMessage] = unheardWords[run?.status ?? ""] ?? ["internal", "it ended before it was sent"];
  return {
    ...{ status: null, headers: null, body: null, base64: false, bytes: null, truncated: false, hops: null },
    ...{ errorKind, errorMessage, phases: { dnsMs: null, connectMs: null, tlsMs: null }, firstByteMs: null },
    totalMs: run?.durationMs ?? 0,
  };
}

const unheardWords: Readonly<Record<string, readonly [ErrorKind | null, string | null]>> = {
  success: [null, null],
  lost: ["lost", "the process that sent it was lost: whether it was answered is not known"],
  timed_out: ["timeout", "there was no complete answer within the timeout"],
  cancelled: ["cancelled", "it was cancelled while it was sent"],
};

async function closeAttempt(tx: Tx, call: Call, runId: string, end: AttemptEnd): Promise<void> {
  const { phases } = end;
  await tx.run(sql`update call_attempt set finished_at = ${greatest}(${tx.now}, started_at),
      response_status = ${end.status}, response_headers = ${end.headers}, response_body = ${end.body},
      response_base64 = ${end.base64 ? 1 : 0}, response_bytes = ${end.bytes},
      response_truncated = ${end.truncated ? 1 : 0}, hops = ${end.hops}, error_kind = ${end.errorKind},
      error_message = ${end.errorMessage}, dns_ms = ${phases.dnsMs}, connect_ms = ${phases.connectMs},
      tls_ms = ${phases.tlsMs}, first_byte_ms = ${end.firstByteMs}, total_ms = ${end.totalMs}
    where tenant_id = ${call.tenant_id} and call_id = ${call.id} and id = ${runId} and finished_at is null`);
}
