// A lease is the right of a remote worker to end one run, for a while. Whoever holds its secret may say how the run goes on; the
// run's id is shown everywhere and proves nothing. The book's time alone judges it.
//
//   claimed ──► settled   the worker said what came of it       ──► failed    … or why it failed
//      │  ▲     returned  the worker left, and another has it   ──► ended     somebody else ended the run
//      └──┘     lost      it ran out, and the job is tried again
//     renewed
import { DaybookError, notFound } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { hashSecret, isSameHash, newSecret } from "../../core/secret.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, forUpdate, insertInto } from "../../storage/word.ts";
import { beatStatement } from "../../telemetry/session.ts";
import type { ClaimedJob } from "../claim/claim.ts";
import { isCancelled } from "../settle/cancel.ts";

/** Who speaks for a worker, and what it may run; null is everything. Without a grant nothing is checked: the program itself asks. */
export type WorkerGrant = {
  readonly queues: readonly string[] | null;
  readonly names: readonly string[] | null;
  readonly tokenId: string | null;
};

export const closings = ["settled", "failed", "returned", "lost", "ended"] as const;
export type ClosedAs = (typeof closings)[number];

const columns = {
  tenant_id: "text",
  token_hash: "text",
  run_id: "text",
  job_seq: "integer",
  session_seq: "integer",
  lasts_ms: "integer",
  renewed_at: "integer",
  expires_at: "integer",
} as const;

/** What is claimed, with the secret that is shown this once. */
export type Leased = {
  readonly job: ClaimedJob;
  readonly secret: string;
  readonly expiresAt: number;
  readonly deadlineAt: number | null;
};

type Giving = { readonly sessionSeq: number; readonly lastsMs: number };

/** Gives a lease for each of these jobs, which the session has just claimed in this transaction. */
export async function giveLeases(
  tx: Tx,
  jobs: readonly ClaimedJob[],
  { sessionSeq, lastsMs }: Giving,
): Promise<Leased[]> {
  if (jobs.length === 0) return [];
  const leased = jobs.map((job): Leased => {
    const deadlineAt = job.timeout_ms === null ? null : tx.now + job.timeout_ms;
    return { job, secret: newSecret("lease"), expiresAt: endOf(tx.now, lastsMs, deadlineAt), deadlineAt };
  });
  const rows = leased.map(({ job, secret, expiresAt }) => ({
    tenant_id: job.tenant_id,
    token_hash: hashSecret(secret),
    run_id: job.run_id,
    job_seq: job.seq,
    session_seq: sessionSeq,
    lasts_ms: lastsMs,
    renewed_at: tx.now,
    expires_at: expiresAt,
  }));
  await tx.run(insertInto("daybook_lease", columns, rows));
  return leased;
}

/** A lease never outlives the timeout of its run. */
function endOf(now: number, lastsMs: number, timeoutAt: number | null): number {
  return Math.min(now + lastsMs, timeoutAt ?? Number.MAX_SAFE_INTEGER);
}

export type LeaseRow = {
  readonly seq: number;
  readonly token_hash: string;
  readonly run_id: string;
  readonly job_seq: number;
  readonly lasts_ms: number;
  readonly renewed_at: number;
  readonly expires_at: number;
  readonly lines: number;
  readonly closed_as: ClosedAs | null;
};

type Held = LeaseRow & {
  readonly token_id: string | null;
  readonly session_id: string;
  readonly last_heartbeat_at: number;
};

/** The lease with this secret, locked. What is forged and what is another tenant's is not there; what another token claimed is
 *  forbidden. The request is a beat of the session. */
export async function holdLease(tx: Tx, secret: string, grant: WorkerGrant | undefined): Promise<LeaseRow> {
  const hash = hashSecret(secret);
  // Looked up by its hash, so how long it takes says nothing about the secret.
  const held = await tx.get<Held>(sql`select lease.seq, lease.token_hash, session.token_id, session.id as session_id,
      session.last_heartbeat_at
    from daybook_lease lease join daybook_session session on session.seq = lease.session_seq
    where lease.token_hash = ${hash} and lease.tenant_id = ${tx.tenant}`);
  if (held === undefined || !isSameHash(held.token_hash, hash)) {
    throw notFound("there is no such lease: it was never given, or it ran out more than a day ago", {});
  }
  refuseOtherToken(held, grant, "lease");
  if (tx.now - held.last_heartbeat_at >= limits.beatMs) await tx.run(beatStatement(held.session_id, tx.now));
  const row = await tx.get<LeaseRow>(sql`select * from daybook_lease lease where seq = ${held.seq} ${forUpdate}`);
  if (row === undefined) throw notFound("there is no such lease any more", {});
  return row;
}

/** What one token claimed, or attached, another may not use. */
export function refuseOtherToken(
  of: { readonly token_id: string | null },
  grant: WorkerGrant | undefined,
  what: string,
): void {
  if (grant === undefined || grant.tokenId === of.token_id) return;
  throw new DaybookError("forbidden", `this ${what} was made with another token: use the token that it was made with`);
}

/** The run of a lease while it is open. */
export type OpenRun = {
  readonly seq: number;
  readonly run_id: string;
  readonly started_at: number;
  readonly timeout_at: number | null;
  /** 1 when a user wants it to end. */
  readonly cancelling: number;
};

export async function openRunOf(tx: Tx, { job_seq: seq, run_id: id }: LeaseRow): Promise<OpenRun | undefined> {
  return tx.get<OpenRun>(sql`select line.seq, line.run_id, line.started_at, line.timeout_at,
      case when ${isCancelled} then 1 else 0 end as cancelling
    from daybook_line line where line.seq = ${seq} and line.run_id = ${id} and line.started_at is not null`);
}

/** Says when it ends now. */
export async function renew(tx: Tx, lease: LeaseRow, run: OpenRun, lastsMs: number): Promise<number> {
  const expiresAt = endOf(tx.now, lastsMs, run.timeout_at);
  await tx.run(sql`update daybook_lease as lease set renewed_at = ${tx.now}, expires_at = ${expiresAt}, lasts_ms = ${lastsMs}
    where seq = ${lease.seq}`);
  return expiresAt;
}

export async function countLine(tx: Tx, { seq }: LeaseRow): Promise<void> {
  await tx.run(sql`update daybook_lease as lease set lines = lines + 1 where seq = ${seq}`);
}

export async function closeLeases(tx: Tx, seqs: readonly number[], as: ClosedAs): Promise<void> {
  if (seqs.length === 0) return;
  await tx.run(sql`update daybook_lease as lease set closed_at = ${tx.now}, closed_as = ${as}
    where seq ${anyOf("integer", seqs)} and closed_at is null`);
}
