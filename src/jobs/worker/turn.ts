// One turn of a worker: settle what ended and claim what comes next, in one transaction, so that a cycle costs one
// commit. Due jobs are released and what runs wrote about themselves is stored on the way.
import { killPoint } from "../../core/fact.ts";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, rowsInto, rowSet, skipLocked, arrayOf } from "../../storage/word.ts";
import { writeLogs } from "../../telemetry/log.ts";
import { isAlive } from "../../telemetry/attach.ts";
import { findAlone, noClaim, claim, claimAlone, type Claim, type ClaimedJob, type Claimer } from "../claim/claim.ts";
import type { Ports } from "../kind.ts";
import { candidateColumns, jobsChannel } from "../job.ts";
import type { Pending } from "./runs.ts";
import { areLockedAtOnce } from "../lock-order.ts";
import { settle, supersededOf, type Ending } from "../settle/settle.ts";
import { nextDueAt } from "./wake.ts";
import { releaseDue, releaseHosted, releaseRates } from "../wait/park.ts";
import { enterTogether, lookAhead } from "../claim/lane.ts";
import { taking, tie, type Claimed } from "../state.ts";
import { claimReserved } from "../direct/reservation.ts";

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

export async function takeTurn(tx: Tx, ports: Ports, claimer: Claimer, work: TurnWork): Promise<Turn> {
  work.attempted.length = 0; // a unit may run more than once
  // The session comes before its jobs, as in the transaction that ends it. On PostgreSQL all of this is on the wire together.
  const mayClaimQuickly = tx.dialect === "postgres" && mayClaimAtOnce(work) && claimer.reserved === undefined;
  const [alive, superseded, quick] = await Promise.all([
    isAlive(tx, claimer.sessionSeq),
    write(tx, ports, work),
    mayClaimQuickly ? claimQuick(tx, claimer, work.want, work.attempted) : undefined,
  ]);
  // A worker that serves a reservation closes its lane before it locks anything else (lock-order.ts), so others release what is due.
  const releases = work.lookForDue && claimer.reserved === undefined;
  const due = releases ? await releaseDue(tx, limits.claimParkedMax) : [];
  if (releases) await releaseRates(tx);
  const jobs = quick?.jobs ?? [];
  const want = work.want - jobs.length;
  const claims = alive && want > 0;
  const moreHosted =
    work.lookForHosted && claimer.reserved === undefined && (!claims || (await releaseHosted(tx, claimer, want)));
  const goesOn = claims && (quick?.more !== false || due.length > 0 || moreHosted);
  const rest = goesOn ? await claimFor(tx, claimer, work, want) : noClaim();
  const claimed = jobs.length === 0 ? rest : { ...rest, jobs: [...jobs, ...rest.jobs], more: rest.more || want === 0 };
  tellOfDue(tx, due, claimed);
  // After the claim, which may have parked a job until its rate opens.
  const dueAt = work.lookForDue || claimed.parkedForTime ? await nextDueAt(tx) : undefined;
  const waitsAlone = work.lookForDue || work.alone ? (await findAlone(tx, claimer)) !== undefined : undefined;
  killPoint("jobs.claimed");
  return { superseded, claim: claimed, alive, dueAt, moreHosted, waitsAlone };
}

/** Whether nothing that this turn writes can decide what it may claim. */
function mayClaimAtOnce({ want, alone, endings, lookForDue, lookForHosted }: TurnWork): boolean {
  if (want <= 0 || alone || lookForDue || lookForHosted) return false;
  return areLockedAtOnce(endings) && endings.every(({ status }) => status === "success");
}

/** Settles what ended and writes what runs said about themselves. Returns the endings that came too late. */
async function write(tx: Tx, ports: Ports, work: TurnWork): Promise<readonly Ending[]> {
  const { late } = await settle(tx, ports, work.endings);
  const superseded = await supersededOf(tx, work.endings, late);
  if (work.logs.length > 0) await writeLogs(tx, work.logs);
  await writeProgress(tx, work.progress);
  killPoint("jobs.settled");
  return superseded;
}

// What became due may be another's to run, which no longer finds it among what is to come. If we took it all, no worker is woken.
function tellOfDue(tx: Tx, due: readonly number[], { jobs }: Claim): void {
  if (due.length === 0) return;
  const ours = new Set(jobs.map((job) => job.seq));
  if (due.some((seq) => !ours.has(seq))) tx.wake(jobsChannel);
}

// This turn may hold limits by now. A transaction that holds one of these rows may be about to end its run, and wait for just those
// limits; then there is nothing left to write. If it holds the row for another reason, the next turn writes.
function unlessHeld(rows: readonly { readonly seq: number }[]): Sql {
  const seqs = rows.map((row) => row.seq);
  return sql`and line.seq in (select seq from daybook_line where seq ${anyOf("integer", seqs)} ${skipLocked})`;
}

// For each row by itself, as state.ts does.
const setProgress =
  "update daybook_line set progress = ?, progress_note = ? where seq = ? and run_id = ? and started_at is not null";

export async function writeProgress(tx: Tx, progress: TurnWork["progress"]): Promise<void> {
  if (progress.length === 0) return;
  const columns = { progress: "real", note: "text", seq: "integer", run_id: "text" } as const;
  if (tx.dialect === "sqlite") return void (await tx.run(rowsInto(setProgress, Object.keys(columns), progress)));
  await tx.run(sql`update daybook_line as line set progress = v.progress, progress_note = v.note
    from ${rowSet("v", columns, progress)}
    where line.seq = v.seq and line.run_id = v.run_id and line.started_at is not null ${unlessHeld(progress)}`);
}

// On PostgreSQL a statement that waits for the answer to the one before costs a round trip, and a claim as claim.ts makes it is
// six of them. Most claims take plain jobs from lanes that the last look found, and need no answer on the way: they are sent
// at once, behind the settle of the same turn. What they cannot decide (limits, orders, gates, hosts, other lanes) is left in
// line for claim.ts, in the same transaction, so the order within a lane is the same.

export type QuickClaim = {
  readonly jobs: readonly ClaimedJob[];
  /** Something that was not taken stands in line. */
  readonly more: boolean;
};

const nothing: QuickClaim = { jobs: [], more: true };

/** A job at the front of a lane. A lane in which nothing stands gives one row, whose `place` is null. */
type Found = ClaimedJob & {
  readonly lane: number;
  readonly stood: number;
  readonly place: number | null;
  readonly taken: boolean;
};

/** Takes plain jobs of the lanes that are next in turn. Sent before the answer to the statement before it, it costs no round trip. */
export async function claimQuick(tx: Tx, claimer: Claimer, want: number, attempted: Claimed[]): Promise<QuickClaim> {
  const { turns } = claimer;
  const lanes = turns.next.lanes.slice(0, Math.min(want, limits.claimLanesMax));
  const takesAll = claimer.queues === null && claimer.tenant === undefined;
  if (tx.dialect === "sqlite" || lanes.length === 0 || !takesAll) return nothing;
  const share = Math.ceil(want / lanes.length);
  const ids = Array.from({ length: share * lanes.length }, () => tx.ids());
  const [, found, others] = await Promise.all([
    enterTogether(tx, lanes),
    tx.all<Found>(takePlain(tx, claimer, { ids, want, share })),
    lookAhead(tx, turns, lanes, limits.claimLanesMax),
  ]);
  const left = new Map<number, number>();
  const jobs: ClaimedJob[] = [];
  for (const row of found.sort((a, b) => (a.place ?? 0) - (b.place ?? 0))) {
    if (!left.has(row.lane)) left.set(row.lane, row.stood);
    if (!row.taken) continue;
    left.set(row.lane, (left.get(row.lane) ?? 0) - 1);
    jobs.push(Object.assign(row, { run_id: ids[(row.place ?? 0) - 1] ?? "" }));
  }
  attempted.push(...jobs);
  const full = new Set(found.flatMap(({ lane, stood }) => (stood === share ? lane : [])));
  const rest = lanes.filter((lane) => left.get(lane) !== 0 || full.has(lane));
  // A lane that came twice would be claimed from twice.
  const next = [...new Set([...others.filter((lane) => !lanes.includes(lane)), ...rest])];
  const more = next.length > 0 || turns.next.tenants.length > 1;
  // As nextLanes does: with nothing in line, the lanes of before are the best guess.
  turns.next = { ...turns.next, lanes: next.length > 0 ? next : lanes };
  return { jobs, more };
}

type Wanted = { readonly ids: readonly string[]; readonly want: number; readonly share: number };

// A job is plain when the claim needs no answer to know that it may run: no limit, no order, no key that its start frees, not to
// be run alone, hosted here, its name not paused. The first job of a lane that is not plain ends what is taken from the lane.
// PostgreSQL guesses that a limit it does not know lets a tenth of the table through, and would read whole tables; the lateral job
// and the arrays make it look up row by row. Each step is materialized once: a copy of a hundred jobs costs as much as ten claims.
function takePlain(tx: Tx, { sessionSeq, hosts }: Claimer, { ids, want, share }: Wanted): Sql {
  const isSpecial = sql`found.ties & ${tie.limit | tie.order} <> 0 or found.alone > 1
    or found.key_scope is not distinct from 'queued' or found.name <> all(${arrayOf("text", [...hosts])})
    or (found.tenant_id, found.name) in (select paused.tenant_id, paused.name from daybook_paused_name paused)`;
  const fromPlain = sql`unnest(array(select seq from plain), array(select (${arrayOf("text", ids)})[place] from plain),
    array(select timeout_ms from plain)) as v(seq, run_id, timeout_ms)`;
  return sql`with open as materialized (
      select lane.seq, lane.queue
      from unnest(string_to_array(current_setting('daybook.lanes'), ',')::bigint[]) with ordinality as entered(seq, turn)
      join daybook_lane lane on lane.seq = entered.seq
      where lane.paused_at is null and lane.limit_max is null and lane.rate_max is null
        and not exists (select 1 from daybook_reservation reservation where reservation.lane_seq = lane.seq
          and reservation.status = 'active' and reservation.expires_at > ${tx.now})
        and exists (select 1 from daybook_session session where session.seq = ${sessionSeq} and session.status = 'running')
      order by entered.turn),
    found as materialized (
      select ${candidateColumns}, line.ties, open.seq as lane_seq, open.queue, row_number() over () as place
      from open cross join lateral (
        select line.seq, line.ties, line.available_at from daybook_line line
        where line.lane_seq = open.seq and line.status = 'queued'
        order by line.priority desc, line.position, line.seq limit ${share} for no key update skip locked) as line
      cross join lateral (select * from daybook_job job where job.seq = line.seq offset 0) as job),
    front as materialized (
      select found.lane_seq, count(*) as stood, min(found.place) filter (where ${isSpecial}) as stop
      from found group by found.lane_seq),
    plain as materialized (
      select found.seq, found.timeout_ms, found.place from found join front on front.lane_seq = found.lane_seq
      where found.place <= ${want} and (front.stop is null or found.place < front.stop)),
    taken as (${taking(tx, sessionSeq, fromPlain)})
    select open.seq as lane, coalesce(front.stood, 0) as stood, found.*,
      coalesce(found.place <= ${want} and (front.stop is null or found.place < front.stop), false) as taken
    from open left join front on front.lane_seq = open.seq left join found on found.lane_seq = open.seq`;
}

/** What a turn claims: for its reservation, alone, or from the lanes in turn. */
export function claimFor(tx: Tx, claimer: Claimer, work: TurnWork, want: number): Promise<Claim> {
  const { reserved } = claimer;
  if (work.alone) return claimAlone(tx, claimer, work.attempted);
  if (reserved === undefined) return claim(tx, claimer, want, work.attempted);
  // A lane is closed before anything else is locked (lock-order.ts), so after its own end it looks again in the next turn.
  if (work.endings.length > 0) return Promise.resolve(noClaim());
  return claimReserved(tx, { claimer, attempted: work.attempted }, reserved);
}
