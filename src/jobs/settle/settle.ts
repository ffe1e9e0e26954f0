// Settle: an open run becomes one row of `run`, and its job ends (state.ts), in one transaction and only by its owner.
// A result of an owner that has lost the job changes nothing and is named superseded. What failed and may be tried again gets its
// next job here, so that no crash can come between.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, forUpdate } from "../../storage/word.ts";
import { freeKeys, holderOf, isTakenBy } from "../key.ts";
import { freePermits } from "../wait/park.ts";
import { endsWith, holdGroupsOf, memberEnded, isEnding } from "../group/group.ts";
import { kindOf, jobSettled, jobSuperseded, lockForKinds, type Ended, type Ports } from "../kind.ts";
import { tellAllEnded } from "./notify.ts";
import { doneChannel, jobsChannel, readJobs, seqsOf, type JobRow } from "../job.ts";
import { areLockedAtOnce, lockJobs, lockGroupOf } from "../lock-order.ts";
import { endRuns, type EndedRuns, type Owned } from "../state.ts";
import { lostTwice, runsAlone, type ClaimedJob } from "../claim/claim.ts";
import type { RunStatus } from "../../telemetry/run.ts";
import { backoffMs, type RetryAdvice, type Backoff } from "../../core/retry.ts";
import { conflict, notFound, type DaybookError } from "../../core/error.ts";
import { insertJobs, type Enqueued, type NewJob } from "../enqueue.ts";
import { keptPlace } from "../line/room.ts";

export type Settled = {
  /** The runs that another process had ended: nothing was written for them. */
  readonly late: ReadonlySet<string>;
  readonly retried: number;
};

export async function settle(tx: Tx, ports: Ports, endings: readonly Ending[]): Promise<Settled> {
  if (endings.length === 0) return { late: new Set(), retried: 0 };
  // On PostgreSQL they travel together: whether a listener wants to hear of it, the locks in their order, the ends, the gates.
  const lanes = endings.flatMap(({ job }) => job?.lane_seq ?? []);
  const locked = tx.dialect === "sqlite" ? undefined : lockJobs(tx, endings);
  if (locked !== undefined && !areLockedAtOnce(endings)) await locked;
  const [facts, { more, late }, gated] = await Promise.all([
    ports.announce?.wantsJobs(tx) ?? false,
    endRuns(tx, endings),
    lanes.length === endings.length ? hasGate(tx, lanes) : undefined,
    locked,
  ]);
  const ends = { endings, more, late, facts };
  const rows = await readInteresting(tx, ports, ends);
  if (rows.length > 0) {
    await freeKeys(tx, rows);
    await freePermits(tx, rows);
  }
  // An ending without its lane is a lost or a late run, never a success, so `more` names it.
  const lanesOf = more.map((job) => job.lane_seq);
  if (gated ?? (await hasGate(tx, lanesOf))) tx.wake(jobsChannel);
  return { late, retried: await follow(tx, ports, ends, rows) };
}

// A place in a limited lane is free, or a reserved one empty; the worker that serves it need not be the one that settles. One
// question for the whole batch, because most lanes have neither.
async function hasGate(tx: Tx, lanes: readonly number[]): Promise<boolean> {
  return lanes.length > 0 && (await tx.get(gateOf(lanes))) !== undefined;
}

export function gateOf(lanes: readonly number[]): Sql {
  return sql`select seq from daybook_lane lane where seq ${anyOf("integer", [...new Set(lanes)])}
    and (limit_max is not null or exists (select 1 from daybook_reservation reservation
      where reservation.lane_seq = lane.seq and reservation.status = 'active')) limit 1`;
}

type Ends = EndedRuns & { readonly endings: readonly Ending[]; readonly facts: boolean };

/** The jobs whose end asks for more than their own row. Runs that simply succeeded cost nothing without a listener. */
export async function readInteresting(tx: Tx, ports: Ports, ends: Ends): Promise<JobRow[]> {
  const { endings, more, late, facts } = ends;
  if (ports.runsEnded !== undefined) tx.afterCommit(ports.runsEnded);
  if (more.some((job) => job.awaited !== 0)) tx.wake(doneChannel);
  const listening = facts || jobSettled.heard;
  if (more.length === 0 && !listening) return [];
  const endingOf = new Map(endings.map((ending) => [ending.runId, ending]));
  const isPlain = (job: Owned): boolean => {
    const ending = endingOf.get(job.run_id ?? "");
    if (job.ties !== 0 || ending?.status !== "success") return false;
    return job.kind === null || kindOf(ports, job).quiet(ending.job?.attempt ?? 2);
  };
  const wanted = listening ? endings.filter(({ runId }) => !late.has(runId)) : more.filter((job) => !isPlain(job));
  if (wanted.length === 0) return [];
  const rows = await readJobs(tx, seqsOf(wanted));
  // What stood in the line is gone from there.
  const line = new Map(
    more.map(({ seq, position, awaited, cancel_requested_at }) => [seq, { position, awaited, cancel_requested_at }]),
  );
  return rows.map((row) => ({ ...row, ...line.get(row.seq) }));
}

/** Makes the retries and tells the rooms above. */
export async function follow(tx: Tx, ports: Ports, { endings, facts }: Ends, rows: readonly JobRow[]): Promise<number> {
  if (rows.length === 0) return 0;
  const endingOf = new Map(endings.map((ending) => [ending.runId, ending]));
  const groups = await holdGroupsOf(tx, rows);
  await lockForKinds(tx, ports, rows);
  const over: JobRow[] = [];
  const ended: Ended[] = [];
  for (const row of rows) {
    const ending = endingOf.get(row.run_id ?? "") as Ending;
    const group = row.group_seq === null ? undefined : groups.get(row.group_seq);
    const again = group !== undefined && endsWith(group, ending) ? null : againAfter(row, ending);
    const retriedBy = again === null ? null : await makeRetry(tx, row, again);
    if (retriedBy === null) over.push(row);
    ended.push(describe(row, ending, retriedBy));
  }
  // Jobs with a limit or a kind are read in any case, and are announced only if a listener wants to hear of them.
  await tellAllEnded(tx, ports, ended, facts);
  // Once all retries are there: of two that end together, the first must see that the other one goes on.
  for (const row of over) {
    const group = row.group_seq === null ? undefined : groups.get(row.group_seq);
    if (group !== undefined) await memberEnded(tx, ports, group, row);
  }
  return rows.length - over.length;
}

function describe(job: JobRow, { runId, durationMs, ...ending }: Ending, retriedBy: string | null): Ended {
  const { tenant_id: tenant, id, name, status, attempt } = job;
  const error = ending.error === undefined ? null : { type: ending.error.type, message: ending.error.message };
  const run = { id: runId, status: ending.status, durationMs, error };
  return { job, outcome: { tenant, id, name, status, attempt, run, retriedBy } };
}

/** Which results came too late: another process had ended the run. A result that is in the book already did not: the answer to its
 *  commit was lost, and the worker settled it a second time. */
export async function supersededOf(tx: Tx, endings: readonly Ending[], late: EndedRuns["late"]): Promise<Ending[]> {
  if (late.size === 0) return [];
  const refused = endings.filter((ending) => late.has(ending.runId));
  const seqs = refused.map((ending) => ending.seq);
  const rows = await tx.all<{ id: string; status: string }>(sql`select id, status from daybook_run
    where job_seq ${anyOf("integer", seqs)}`);
  const kept = new Map(rows.map((row) => [row.id, row.status]));
  return refused.filter((ending) => kept.get(ending.runId) !== ending.status);
}

export function tellSuperseded(superseded: readonly Ending[]): void {
  for (const { job, runId, status } of superseded) {
    jobSuperseded.state({ id: job?.id ?? "", name: job?.name ?? "", runId, status });
  }
}

// How a run ended, and what follows from it for its job.

export type Ending = {
  readonly seq: number;
  /** The fence: only a caller that knows it may end the run. */
  readonly runId: string;
  readonly status: RunStatus;
  readonly durationMs: number;
  /** When it ended, if that is not now: a lost run ended when its session was last heard. */
  readonly endedAt?: number;
  readonly error?: { readonly type: string; readonly message: string; readonly trace: string | null } | undefined;
  /** As it was claimed; a rescue does not know it. */
  readonly job?: ClaimedJob;
  readonly result?: string | null;
  /** Why what the handler returned is not kept. */
  readonly resultRefused?: string | null;
  /** The process was told to stop: the job is made again and nothing is counted. */
  readonly shutdown?: boolean;
  /** What a built-in handler knows about trying again. */
  readonly advice?: RetryAdvice | undefined;
};

/** What the next job of the chain counts, or null when the chain ends here. */
export type Again = {
  readonly attempt: number;
  readonly losses: number;
  /** How often it was lost among others: 0, 1, or 2 when it must run alone. */
  readonly alone: number;
  readonly backoff: boolean;
  /** It stands where the last one stood: what happened was not its doing. */
  readonly keepsPlace?: boolean;
  readonly atLeastMs?: number | undefined;
};

/** As many losses as this mean that the work cannot be what ends its process: it is never blamed, and need not run alone. */
export const neverBlamed = 1_000_000;

export function againAfter(job: JobRow, ending: Pick<Ending, "status" | "shutdown" | "advice">): Again | null {
  const { attempt, losses, alone } = job;
  const { advice } = ending;
  // Its user wants it to end; that its run failed or was lost before it heard of it does not change that.
  if (job.cancel_requested_at !== null) return null;
  // The caller of direct work is told, and decides.
  if (job.origin === "direct") return null;
  if (ending.shutdown === true) return { attempt, losses, alone, backoff: false, keepsPlace: true };
  switch (ending.status) {
    case "error":
    case "timed_out": {
      const atLeastMs = advice?.atLeastMs;
      if (advice?.counts === false) return { attempt, losses, alone: 0, backoff: false, atLeastMs };
      if (advice?.again === false || attempt >= job.attempts) return null;
      return { attempt: attempt + 1, losses, alone: 0, backoff: true, atLeastMs };
    }
    case "lost": {
      if (job.losses_max === 0) return null;
      // A loss is charged only to a job that ran alone; among others it is not known which one it was.
      const counted = losses + (runsAlone(job) ? 1 : 0);
      if (counted >= job.losses_max) return null;
      const next = job.losses_max >= neverBlamed ? 0 : Math.min(alone + 1, lostTwice);
      return { attempt, losses: counted, alone: next, backoff: false, keepsPlace: true };
    }
    case "success":
    case "cancelled":
    case "skipped":
      return null;
  }
}

/** The next job of the chain, made in the transaction in which the last try ended. It takes over a key that is held until the
 *  work is done. `behind` is the group whose current job it waits for. */
export async function makeRetry(
  tx: Tx,
  old: JobRow,
  again: Again & { readonly origin?: "manual"; readonly behind?: string | undefined },
): Promise<string> {
  const backoff = old.backoff === null ? null : (JSON.parse(old.backoff) as Backoff);
  const planned = again.backoff ? backoffMs(backoff, old.attempt, tx.random) : 0;
  const delay = Math.max(planned, again.atLeastMs ?? 0);
  const reason = again.behind !== undefined ? "group" : delay > 0 ? "time" : null;
  const row: NewJob = {
    // What a job is and belongs to, its next try is and belongs to as well; an insert takes the columns of a new job alone.
    ...old,
    id: tx.ids(),
    idempotency_key: null,
    status: reason === null ? "queued" : "waiting",
    waits_for: reason,
    waits_key: again.behind ?? null,
    created_at: tx.now,
    available_at: tx.now + delay,
    delay_ms: delay > 0 ? delay : null,
    origin: again.origin ?? "retry",
    attempt: again.attempt,
    losses: again.losses,
    retry_of: old.seq,
    chain_seq: old.chain_seq ?? old.seq,
    alone: again.alone,
    position: again.keepsPlace === true ? await keptPlace(tx, old) : null,
    holdsKey: old.key_scope === "done",
  };
  if ((await insertJobs(tx, [row])) !== 1) {
    if (again.origin === "manual") throw await refusal(tx, old);
    // The chain goes on without a key that another job has.
    await insertJobs(tx, [{ ...row, holdsKey: false }]);
  }
  tx.wake(jobsChannel);
  return row.id;
}

async function refusal(tx: Tx, old: JobRow): Promise<DaybookError> {
  const holder = await holderOf(tx, old);
  return conflict(holder === undefined ? `job ${old.id} has been retried already` : isTakenBy(holder), { id: old.id });
}

/** Retry by hand: continues the last job of a chain, whatever it ended as, and may go beyond `attempts`. */
export async function retryJob(tx: Tx, id: string): Promise<Enqueued> {
  // A retry is of its chain's group or of none, so this is the only one there can be.
  await lockGroupOf(tx, { tenant: tx.tenant, id });
  const last = await lastOfChain(tx, id);
  const { status } = last;
  if (status !== "failed" && status !== "cancelled") {
    const why =
      last.finished_at === null
        ? `${last.id === id ? "" : ` and already continues ${id}`}: wait for it, or cancel it first`
        : ": enqueue a new job to do it again";
    throw conflict(`job ${last.id} is ${status}${why}`, { id: last.id, status });
  }
  // A try more than planned is planned for: the chain's own count must stay within its limit.
  const attempt = last.attempt + 1;
  const [group] = (await holdGroupsOf(tx, [last])).values();
  // A group that has ended, or is ending, stays as it is: the job then runs on its own.
  const within = group === undefined || isEnding(group) ? { group_seq: null, group_slot: null } : {};
  const allowed = { ...last, attempts: Math.max(last.attempts, attempt), ...within };
  // An open group that runs one after another is at another job: this one begins when that has ended.
  const behind = allowed.group_seq !== null && group?.mode === "sequential" ? group.id : undefined;
  const again = { attempt, losses: 0, alone: last.alone, backoff: false, origin: "manual", behind } as const;
  const made = await makeRetry(tx, allowed, again);
  return { id: made, name: last.name, status: behind === undefined ? "queued" : "waiting", created: true };
}

// A retry by hand holds the last job of its chain, so that only one continues it.
async function lastOfChain(tx: Tx, id: string): Promise<JobRow> {
  const lock = async (which: Sql): Promise<{ seq: number } | undefined> =>
    tx.get(sql`select seq from daybook_job where ${which} ${forUpdate}`);
  let last = await lock(sql`tenant_id = ${tx.tenant} and id = ${id}`);
  for (let next = last; next !== undefined; next = await lock(sql`retry_of = ${next.seq}`)) last = next;
  const [row] = last === undefined ? [] : await readJobs(tx, [last.seq]);
  if (row === undefined) throw notFound(`there is no job ${id}`, { id });
  return row;
}
