// One turn of a worker: settle what ended and claim what comes next, in one transaction, so that a cycle costs one
// commit. Due jobs are released and what runs wrote about themselves is stored on the way.
import { killPoint } from "../core/fault.ts";
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, rowsInto, rowSet, skipLocked } from "../storage/word.ts";
import { writeLogs } from "../telemetry/log.ts";
import { isAlive } from "../telemetry/session.ts";
import {
  claim,
  claimAlone,
  findAlone,
  findTaken,
  type Claim,
  type Claimed,
  type ClaimedJob,
  type Claimer,
} from "./claim.ts";
import { claimQuick } from "./claim-quick.ts";
import { claimReserved, none } from "./direct/claim-reserved.ts";
import type { JobHooks } from "./hooks.ts";
import { jobsChannel } from "./job.ts";
import type { Pending } from "./worker/pending.ts";
import type { Ending } from "./outcome.ts";
import { nextDueAt, releaseDue, releaseHosted } from "./park.ts";
import { releaseRates } from "./let-in.ts";
import { settle, supersededOf } from "./settle.ts";

export type TurnWork = Pending & {
  /** How many places are free. */
  readonly want: number;
  /** Nothing runs in this process and nothing else will be claimed: take what must run alone. */
  readonly alone: boolean;
  /** Filled with what is taken, because a commit whose fate stays unknown may have taken it. */
  readonly attempted: Claimed[];
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
  /** Whether a job that we could run waits to run alone; known only when it was looked for. */
  readonly waitsAlone: boolean | undefined;
};

export async function takeTurn(tx: Tx, hooks: JobHooks, claimer: Claimer, work: TurnWork): Promise<Turn> {
  work.attempted.length = 0; // a unit may run more than once
  // The session comes before its jobs, as for whoever ends it. On PostgreSQL all of this is on the wire together.
  const mayClaimQuickly = isPlain(work) && claimer.reserved === undefined;
  const [alive, superseded, quick] = await Promise.all([
    isAlive(tx, claimer.sessionSeq),
    write(tx, hooks, work),
    mayClaimQuickly ? claimQuick(tx, claimer, work.want, work.attempted) : undefined,
  ]);
  // Who serves a reservation closes its lane before it locks anything else (lock-order.ts), so others release what is due.
  const releases = work.lookForDue && claimer.reserved === undefined;
  const due = releases ? await releaseDue(tx, limits.claimParkedMax) : [];
  if (releases) await releaseRates(tx);
  const jobs = quick?.jobs ?? [];
  const want = work.want - jobs.length;
  const claims = alive && want > 0;
  const moreHosted =
    work.lookForHosted && claimer.reserved === undefined && (!claims || (await releaseHosted(tx, claimer, want)));
  const goesOn = claims && (quick?.more !== false || due.length > 0 || moreHosted);
  const rest = goesOn ? await claimFor(tx, claimer, work, want) : none;
  const claimed = jobs.length === 0 ? rest : { ...rest, jobs: [...jobs, ...rest.jobs], more: rest.more || want === 0 };
  tellOfDue(tx, due, claimed);
  // After the claim, which may have parked a job until its rate opens.
  const dueAt = work.lookForDue || claimed.parkedForTime ? await nextDueAt(tx) : undefined;
  const waitsAlone = work.lookForDue || work.alone ? (await findAlone(tx, claimer)) !== undefined : undefined;
  killPoint("jobs.claimed");
  return { superseded, claim: claimed, alive, dueAt, moreHosted, waitsAlone };
}

/** Whether nothing that this turn writes can decide what it may claim. */
function isPlain({ want, alone, endings, lookForDue, lookForHosted }: TurnWork): boolean {
  if (want <= 0 || alone || lookForDue || lookForHosted) return false;
  return endings.every(({ plain, limited, status }) => plain === true && limited !== true && status === "success");
}

/** Settles what ended and writes what runs said about themselves. Returns the endings that came too late. */
async function write(tx: Tx, hooks: JobHooks, work: TurnWork): Promise<readonly Ending[]> {
  const { late } = await settle(tx, hooks, work.endings);
  const superseded = await supersededOf(tx, work.endings, late);
  await writeLogs(tx, work.logs);
  await writeProgress(tx, work.progress);
  killPoint("jobs.settled");
  return superseded;
}

/** What a claim whose commit nobody confirmed has taken for this session. */
export async function recallClaim(
  tx: Tx,
  { sessionSeq }: Claimer,
  attempted: readonly Claimed[],
): Promise<ClaimedJob[]> {
  return (await isAlive(tx, sessionSeq)) ? findTaken(tx, attempted) : [];
}

function claimFor(tx: Tx, claimer: Claimer, work: TurnWork, want: number): Promise<Claim> {
  const { reserved, sessionSeq } = claimer;
  if (work.alone) return claimAlone(tx, claimer, work.attempted);
  if (reserved === undefined) return claim(tx, claimer, want, work.attempted);
  // A lane is closed before anything else is locked (lock-order.ts), so after its own end it looks again in the next turn.
  if (work.endings.length > 0) return Promise.resolve(none);
  return claimReserved(tx, { sessionSeq, reserved }, work.attempted);
}

// What became due may be another's to run, and that one no longer finds it among what is to come. When we took all of it,
// nobody is woken for nothing.
function tellOfDue(tx: Tx, due: readonly number[], { jobs }: Claim): void {
  if (due.length === 0) return;
  const ours = new Set(jobs.map((job) => job.seq));
  if (due.some((seq) => !ours.has(seq))) tx.wake(jobsChannel);
}

// We may hold limits by now. Whoever holds one of these rows may be about to end its run, and waits for just those limits;
// then there is nothing left to write down, and should it be somebody else, the next time will do.
function unlessHeld(rows: readonly { readonly seq: number }[]): Sql {
  const seqs = rows.map((row) => row.seq);
  return sql`and line.seq in (select seq from daybook_line where seq ${anyOf("integer", seqs)} ${skipLocked})`;
}

// For each row by itself, as state.ts does.
const setProgress =
  "update daybook_line set progress = ?, progress_note = ? where seq = ? and run_id = ? and started_at is not null";

async function writeProgress(tx: Tx, progress: TurnWork["progress"]): Promise<void> {
  if (progress.length === 0) return;
  const columns = { progress: "real", note: "text", seq: "integer", run_id: "text" } as const;
  if (tx.dialect === "sqlite") return void (await tx.run(rowsInto(setProgress, Object.keys(columns), progress)));
  await tx.run(sql`update daybook_line as line set progress = v.progress, progress_note = v.note
    from ${rowSet("v", columns, progress)}
    where line.seq = v.seq and line.run_id = v.run_id and line.started_at is not null ${unlessHeld(progress)}`);
}
