// What happens when a call's job ends: its attempt ends, and so does the call unless it is retried, in the transaction that ends
// the job (its worker's settle, a recovery, a timeout or a cancel).
import { sql, type Sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { anyOf, assigned, forUpdate, greatest } from "../../storage/word.ts";
import { plainKind, type Ended, type JobEnded, type JobKind } from "../../jobs/kind.ts";
import { callJobName, type CallOutcome, type CallRow, type ErrorKind, type ToTell, tellCalls } from "../call.ts";
import { mustWaitForHost, noteHost, sweepHosts, type HostNote } from "../circuit.ts";
import type { CallsRoom } from "../room.ts";
import { hostIsThere, type AttemptEnd } from "./end.ts";

type Call = Pick<
  CallRow,
  | ("seq" | "tenant_id" | "id" | "name" | "status" | "method" | "host" | "correlation_id" | "due_at" | "submitted_at")
  | "started_at"
>;

/** Calls as a kind of job. */
export function callJobs(room: CallsRoom): JobKind {
  const ended: JobKind["ended"] = (tx, all) => callsEnded(room, tx, all);
  const ownsName: JobKind["ownsName"] = (name) => name === callJobName;
  return { ...plainKind, ended, mustWait: mustWaitForHost, removed: removeCalls, sweep: sweepHosts, ownsName };
}

/** Retention removes a call with its job, its tags and its attempts. */
async function removeCalls(tx: Tx, tenant: string, seqs: readonly number[]): Promise<number> {
  return tx.run(sql`delete from daybook_call where tenant_id = ${tenant} and seq ${anyOf("integer", seqs)}
    and finished_at is not null`);
}

/** Ends the attempts and calls of these jobs together, because a settle ends many jobs. */
async function callsEnded(room: CallsRoom, tx: Tx, all: readonly Ended[]): Promise<void> {
  const calls = await lockCalls(tx, all);
  const notes = new Map<string, HostNote>();
  const writes: Awaitable<unknown>[] = [];
  const told: ToTell[] = [];
  for (const { job, outcome: ended } of all) {
    const call = calls.get(job.kind_seq ?? 0);
    if (call === undefined || call.tenant_id !== job.tenant_id) continue;
    const runId = ended.run?.id;
    const end = runId === undefined ? undefined : room.heard.get(runId);
    if (runId !== undefined) {
      writes.push(closeAttempt(tx, call, runId, end ?? unheard(ended)));
      // Only after the commit, because the transaction may be run again.
      tx.afterCommit(() => room.heard.delete(runId));
    }
    const isThere = end === undefined ? undefined : hostIsThere(end);
    if (isThere !== undefined) note(notes, { tenant: call.tenant_id, host: call.host }, isThere);
    if (ended.retriedBy !== null || (call.status !== "scheduled" && call.status !== "running")) continue;
    const over = endOf(tx, call, ended, end);
    writes.push(endCall(tx, call, over));
    told.push({ topic: `call.${over.status}`, row: call, outcome: over.outcome });
  }
  // They do not depend on each other, and PostgreSQL gets them in one round trip.
  await Promise.all(writes);
  for (const each of notes.values()) await noteHost(tx, each);
  await tellCalls(tx, room.announce, told);
}

async function lockCalls(tx: Tx, all: readonly Ended[]): Promise<Map<number, Call>> {
  const seqs = all.flatMap(({ job }) => job.kind_seq ?? []);
  const rows = await tx.all<Call>(sql`select seq, tenant_id, id, name, status, method, host, correlation_id, due_at,
      submitted_at, started_at from daybook_call where seq ${anyOf("integer", seqs)} order by seq ${forUpdate}`);
  return new Map(rows.map((call) => [call.seq, call]));
}

// The last attempt decides whether the host is up; failures before it still count.
function note(
  notes: Map<string, HostNote>,
  { tenant, host }: Pick<HostNote, "tenant" | "host">,
  isThere: boolean,
): void {
  const key = `${tenant}\n${host}`;
  const before = notes.get(key);
  if (isThere) notes.set(key, { tenant, host, answered: true, failures: 0 });
  else notes.set(key, { tenant, host, answered: before?.answered ?? false, failures: (before?.failures ?? 0) + 1 });
}

function endOf(tx: Tx, call: Call, ended: JobEnded, end: AttemptEnd | undefined) {
  const status = statusAfter(ended);
  const finishedAt = Math.max(tx.now, call.started_at ?? 0, call.submitted_at);
  // A call whose content could not be opened counts as started.
  const startedAt = call.started_at ?? (status === "cancelled" ? null : Math.max(finishedAt, call.due_at));
  const last = ended.run === null ? undefined : (end ?? unheard(ended));
  const outcome: CallOutcome = {
    responseStatus: last?.response_status ?? null,
    errorKind: status === "succeeded" ? null : (last?.error_kind ?? "cancelled"),
    error: status === "succeeded" ? null : (last?.error_message ?? "it was cancelled before it was sent"),
    attempts: call.started_at === null ? 0 : ended.attempt,
    durationMs: last === undefined ? null : Math.round(last.total_ms),
  };
  return { status, startedAt, finishedAt: Math.max(finishedAt, startedAt ?? 0), outcome };
}

function endCall(tx: Tx, { seq, tenant_id: tenant }: Call, over: ReturnType<typeof endOf>): Awaitable<unknown> {
  return tx.run(sql`update daybook_call set status = ${over.status}, started_at = ${over.startedAt},
      finished_at = ${over.finishedAt}, outcome = ${JSON.stringify(over.outcome)},
      content = case kept when 'until_ended' then null else content end
    where seq = ${seq} and tenant_id = ${tenant} and finished_at is null`);
}

function statusAfter({ status }: JobEnded): "succeeded" | "failed" | "cancelled" {
  if (status === "completed") return "succeeded";
  return status === "failed" ? "failed" : "cancelled";
}

/** The end of an attempt whose answer this process never got. */
function unheard({ run }: JobEnded): AttemptEnd {
  const [kind, message] = unheardWords[run?.status ?? ""] ?? ["internal", "it ended before it was sent"];
  return { error_kind: kind, error_message: message, total_ms: run?.durationMs ?? 0 };
}

const unheardWords: Readonly<Record<string, readonly [ErrorKind | null, string | null]>> = {
  success: [null, null],
  lost: ["lost", "the process that sent it was lost: whether it was answered is not known"],
  timed_out: ["timeout", "there was no complete answer within the timeout"],
  cancelled: ["cancelled", "it was cancelled while it was sent"],
};

/** Runs on a copy of the book: closes open attempts, which the original may have finished, and clears the calls that try a host. */
export function holdCalls(now: number): readonly Sql[] {
  const message = "the book was copied while it was sent: whether it was answered is known to the original";
  return [
    sql`update daybook_call_attempt set finished_at = ${greatest}(${now}, started_at), error_kind = 'lost',
      error_message = ${message} where finished_at is null`,
    sql`update daybook_call_host set probe_call_seq = null where probe_call_seq is not null`,
  ];
}

function closeAttempt(tx: Tx, call: Call, runId: string, end: AttemptEnd): Awaitable<unknown> {
  return tx.run(sql`update daybook_call_attempt set finished_at = ${greatest}(${tx.now}, started_at), ${assigned(end)}
    where tenant_id = ${call.tenant_id} and call_id = ${call.id} and id = ${runId} and finished_at is null`);
}
