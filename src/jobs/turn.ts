// One turn of a worker: settle what ended and claim what comes next, in one transaction, so that a cycle costs one
// commit. Due jobs are released and what runs wrote about themselves is stored on the way.
import { killPoint } from "../core/fault.ts";
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, forShare, rowSet, skipLocked } from "../storage/word.ts";
import { writeLogs } from "../telemetry/log.ts";
import { claim, type Claim, type Claimed, type Claimer } from "./claim.ts";
import { claimReserved } from "./direct/claim-reserved.ts";
import type { JobHooks } from "./hooks.ts";
import { jobsChannel } from "./job.ts";
import { lockJobs } from "./lock-order.ts";
import type { News } from "./news.ts";
import type { Ending } from "./outcome.ts";
import { nextDueAt, releaseDue } from "./park.ts";
import { releaseHosted } from "./release-hosted.ts";
import { releaseRates } from "./release-rates.ts";
import { settle } from "./settle.ts";
import { supersededOf } from "./superseded.ts";
import { unclaim } from "./unclaim.ts";

export type TurnWork = News & {
  readonly want: number;
  /** Filled with what is taken, so that it can be given back when the commit's fate stays unknown. */
  readonly attempted: Claimed[];
  readonly idle: boolean;
  /** One that must run alone may be waited for now. */
  readonly mayDrain?: boolean;
  /** Something may be due, or its time is not known. */
  readonly lookForDue: boolean;
  /** Jobs of our names may be parked for want of a host. */
  readonly lookForHosted: boolean;
};

export type Turn = {
  /** The endings that were refused, because the job is no longer this session's. */
  readonly superseded: readonly Ending[];
  readonly claim: Claim;
  /** False when others have ended this session: nothing was claimed. */
  readonly alive: boolean;
  /** Known only when it was looked for. */
  readonly dueAt: number | null | undefined;
  readonly moreHosted: boolean;
};

const nothing: Claim = {
  ...{ jobs: [], leftAlone: false, more: false, parked: 0, wentRound: false, contended: false },
  ...{ opensAt: null, parkedForTime: false, passedBy: false },
};

export async function takeTurn(tx: Tx, hooks: JobHooks, claimer: Claimer, work: TurnWork): Promise<Turn> {
  work.attempted.length = 0; // a unit may run more than once
  // Both lock what they change; together they must do so in one order.
  if (work.endings.length > 0 && work.unclaims.length > 0) await lockJobs(tx, [...work.endings, ...work.unclaims]);
  const { ended } = await settle(tx, hooks, work.endings);
  const superseded = await supersededOf(tx, work.endings, ended);
  await unclaim(tx, hooks, work.unclaims);
  await writeLogs(tx, work.logs);
  await writeProgress(tx, work.progress);
  await writeBegun(tx, work.begun);
  killPoint("jobs.settled");
  const alive = await isAlive(tx, claimer.sessionSeq);
  const due = work.lookForDue ? await releaseDue(tx, limits.claimParkedMax) : [];
  if (work.lookForDue) await releaseRates(tx);
  const claims = alive && work.want > 0;
  const moreHosted = work.lookForHosted && (!claims || (await releaseHosted(tx, claimer, work.want)));
  const claimed = claims ? await claimFor(tx, claimer, work) : nothing;
  tellOfDue(tx, due, claimed);
  // After the claim, which may have parked a job until its rate opens.
  const dueAt = work.lookForDue || claimed.parkedForTime ? await nextDueAt(tx) : undefined;
  killPoint("jobs.claimed");
  return { superseded, claim: claimed, alive, dueAt, moreHosted };
}

function claimFor(tx: Tx, claimer: Claimer, work: TurnWork): Promise<Claim> {
  const { reserved, sessionSeq } = claimer;
  if (reserved === undefined) return claim(tx, claimer, work.want, work);
  // A lane is closed before anything else is locked (lock-order.ts), so after its own end it looks again in the next turn.
  if (work.endings.length + work.unclaims.length > 0) return Promise.resolve(nothing);
  return claimReserved(tx, { sessionSeq, reserved }, work.attempted);
}

// What became due may be another's to run, and that one no longer finds it among what is to come. When we took all of it,
// nobody is woken for nothing.
function tellOfDue(tx: Tx, due: readonly number[], { jobs }: Claim): void {
  if (due.length === 0) return;
  const ours = new Set(jobs.map((job) => job.seq));
  if (due.some((seq) => !ours.has(seq))) tx.wake(jobsChannel);
}

// A session that others have ended must not claim: nobody would recover what it took. The lock makes whoever is just
// ending it wait for us, and find what we took.
async function isAlive(tx: Tx, sessionSeq: number): Promise<boolean> {
  const row = await tx.get(sql`select seq from session where seq = ${sessionSeq} and status = 'running' ${forShare}`);
  return row !== undefined;
}

// The time that a run may take begins with its handler: a job that was claimed and waits in its worker's hands uses none.
async function writeBegun(tx: Tx, begun: TurnWork["begun"]): Promise<void> {
  if (begun.length === 0) return;
  await tx.run(sql`update job set timeout_at = ${tx.now} + timeout_ms
    from ${rowSet("v", { seq: "integer", run_id: "text" }, begun)}
    where job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null ${unlessHeld(tx, begun)}`);
}

// We may hold limits by now. Whoever holds one of these rows may be about to end its run, and waits for just those limits;
// then there is nothing left to write down, and should it be somebody else, the next time will do.
// SQLite has one writer, and would look through all rows for each of them.
function unlessHeld({ dialect }: Tx, rows: readonly { readonly seq: number }[]): Sql {
  if (dialect === "sqlite") return sql``;
  const seqs = rows.map((row) => row.seq);
  return sql`and job.seq in (select seq from job where seq ${anyOf("integer", seqs)} ${skipLocked})`;
}

async function writeProgress(tx: Tx, progress: TurnWork["progress"]): Promise<void> {
  if (progress.length === 0) return;
  const columns = { seq: "integer", run_id: "text", progress: "real", note: "text" } as const;
  await tx.run(sql`update job set progress = v.progress, progress_note = v.note
    from ${rowSet("v", columns, progress)}
    where job.seq = v.seq and job.run_id = v.run_id and job.started_at is not null ${unlessHeld(tx, progress)}`);
}
