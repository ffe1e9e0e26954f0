// Settle: an open run becomes one row of `run`, and its job ends (state.ts), in one transaction and only by its owner.
// A result of an owner that has lost the job changes nothing and is named superseded. What failed and may be tried again gets its
// next job here, so that no crash can come between.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";

import { freeKeys } from "../key.ts";
import { freePermits } from "../wait/park.ts";
import { endsWith, holdGroupsOf, memberEnded } from "../group/group.ts";
import { kindOf, jobSettled, jobSuperseded, lockForKinds, tellAllEnded, type Ended, type Ports } from "../kind.ts";
import { doneChannel, jobsChannel, readJobs, seqsOf, type JobRow } from "../job.ts";
import { areLockedAtOnce, lockJobs } from "../lock-order.ts";
import { makeRetry, againAfter, type Ending } from "./outcome.ts";
import { endRuns, type EndedRuns, type Owned } from "../state.ts";

export type Settled = {
  /** The runs that somebody else had ended: nothing was written for them. */
  readonly late: ReadonlySet<string>;
  readonly retried: number;
};

export async function settle(tx: Tx, ports: Ports, endings: readonly Ending[]): Promise<Settled> {
  if (endings.length === 0) return { late: new Set(), retried: 0 };
  // On PostgreSQL they travel together: whether anybody wants to hear of it, the locks in their order, the ends, the gates.
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

// A place in a limited lane is free, or a reserved one empty; whoever serves it need not be the one that settles. One
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

/** The jobs whose end asks for more than their own row. Runs that simply succeeded cost nothing when nobody listens. */
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
  // Those that ended with a limit or a kind are read whoever listens: nobody is told what nobody wants to hear.
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

/** Which results came too late: somebody else had ended the run. One that is in the book already did not: the answer to its
 *  commit was lost, and it was settled a second time. */
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
