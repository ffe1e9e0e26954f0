// A reservation holds the next turn of a lane: what runs there goes on, nothing else starts, and the order of the line is
// untouched. It belongs to a session, ends with it, and lasts ten minutes, or as long as was asked, unless its owner renews it.
//
//   running ──► direct ──► queue
import { durationMs, type Duration } from "../../core/duration.ts";
import { conflict, DaybookError, notFound } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { anyOf, forUpdate, indexedBy, tryNames } from "../../storage/word.ts";
import { isAlive } from "../../telemetry/attach.ts";
import { tellCancelled } from "../settle/cancel.ts";
import type { Engine } from "../engine.ts";
import { closeLane, laneOf, type LaneRow } from "../claim/lane.ts";
import { plainKind, type JobKind, type Ports } from "../kind.ts";
import { doneChannel, jobsChannel, seqsOf, startableColumns, type Startable } from "../job.ts";
import type { Within } from "../jobs.ts";
import { cancelInLine, queueOne } from "../state.ts";
import { awaitEnd } from "../result.ts";
import { createPermits, limitNames, writePermits } from "../claim/limit.ts";
import { noClaim, start, type Claim, type Starter } from "../claim/claim.ts";

/** The kind of direct work; its `kind_seq` is the reservation. */
export const directKind = "direct";

type Over = "released" | "expired";
export type ReservationStatus = "active" | Over;

export type ReservationRow = {
  seq: number;
  id: string;
  session_seq: number;
  expires_at: number;
  lasts_ms: number;
  status: ReservationStatus;
};

type Asked = {
  readonly lane: number;
  readonly sessionSeq: number;
  readonly note: string | null;
  readonly jobId?: string | null;
  readonly lastsMs?: number;
};

/** The reservation, or the one that holds the lane. The unique index decides between two sessions that ask at once. */
export async function reserveLane(
  tx: Tx,
  ports: Ports,
  { lane, sessionSeq, note, jobId = null, lastsMs = limits.reservationMs }: Asked,
): Promise<{ readonly made: ReservationRow } | { readonly holder: ReservationRow | undefined }> {
  // A book that closes lets its reservations go. A caller that still waits for one must not get it, because it would never be released.
  if (!(await isAlive(tx, sessionSeq))) throw new DaybookError("closed", "the session of this book has ended");
  await closeLane(tx, lane);
  await expire(tx, ports, sql`lane_seq = ${lane} and expires_at <= ${tx.now}`);
  const made = await tx.get<ReservationRow>(sql`insert into daybook_reservation
      (tenant_id, id, lane_seq, session_seq, note, job_id, reserved_at, expires_at, lasts_ms)
    values (${tx.tenant}, ${tx.ids()}, ${lane}, ${sessionSeq}, ${note}, ${jobId}, ${tx.now},
      ${tx.now + lastsMs}, ${lastsMs})
    on conflict do nothing returning *`);
  if (made !== undefined) return { made };
  const holder = await tx.get<ReservationRow>(sql`select * from daybook_reservation reservation
    where lane_seq = ${lane} and status = 'active'`);
  return { holder };
}

export async function renewReservation(tx: Tx, id: string, sessionSeq: number): Promise<ReservationRow> {
  const row = await ownReservation(tx, id, sessionSeq, "renew");
  const expiresAt = tx.now + row.lasts_ms;
  await tx.run(sql`update daybook_reservation as reservation set expires_at = ${expiresAt} where seq = ${row.seq}`);
  return { ...row, expires_at: expiresAt };
}

export async function releaseReservation(tx: Tx, ports: Ports, id: string, sessionSeq: number): Promise<void> {
  await endReservations(tx, ports, [await ownReservation(tx, id, sessionSeq, "release")], "released");
}

/** Direct work as a kind. The end of its run is the end of its turn, in one transaction: the queue goes on, whatever becomes of the
 *  caller. One that never ran leaves the turn to its caller. */
export const directJobs: JobKind = {
  ...plainKind,
  async ended(tx, all) {
    const turns = all.flatMap(({ job, outcome }) => (outcome.run === null ? [] : (job.kind_seq ?? [])));
    const released =
      await tx.run(sql`update daybook_reservation as reservation set status = 'released', ended_at = ${tx.now}
      where seq ${anyOf("integer", turns)} and status = 'active'`);
    if (released === 0) return;
    tx.wake(jobsChannel);
    tx.wake(doneChannel);
  },
  hold: (tx, turn) => tx.all(sql`select seq from daybook_reservation reservation where seq = ${turn} for update`),
};

/** Those of a session that has ended: the queues go on. */
export function freeReservationsOf(tx: Tx, ports: Ports, sessionSeq: number): Promise<number> {
  return expire(tx, ports, sql`session_seq = ${sessionSeq}`);
}

/** By default those that were not renewed in time: claims pass them by already, and their direct work would wait in vain. */
export async function expire(tx: Tx, ports: Ports, which = sql`expires_at <= ${tx.now}`): Promise<number> {
  const held = await tx.all<ReservationRow>(sql`select * from daybook_reservation reservation
    where status = 'active' and ${which} order by seq ${forUpdate}`);
  await endReservations(tx, ports, held, "expired");
  return held.length;
}

/** Ends reservations. A direct job that has not begun has lost its caller, and never runs. */
async function endReservations(tx: Tx, ports: Ports, rows: readonly ReservationRow[], status: Over): Promise<void> {
  if (rows.length === 0) return;
  await tx.run(sql`update daybook_reservation as reservation set status = ${status}, ended_at = ${tx.now}
    where seq ${anyOf("integer", seqsOf(rows))}`);
  const ids = rows.map(({ id }) => id);
  const unbegun = sql`select line.seq from daybook_line line ${indexedBy("jobs_waiting")} where line.status = 'waiting'
      and line.waits_for = 'reservation' and line.waits_key ${anyOf("text", ids)} and line.waits_key is not null`;
  for (const row of await cancelInLine(tx, unbegun)) await tellCancelled(tx, ports, row);
  tx.wake(jobsChannel);
  tx.wake(doneChannel);
}

async function ownReservation(tx: Tx, id: string, sessionSeq: number, verb: string): Promise<ReservationRow> {
  const row = await tx.get<ReservationRow>(sql`select * from daybook_reservation reservation
    where tenant_id = ${tx.tenant} and id = ${id} ${forUpdate}`);
  if (row === undefined) throw notFound(`there is no reservation ${id}`, { id });
  const expired = row.status === "active" && row.expires_at <= tx.now;
  if (row.status !== "active" || expired) {
    const what = expired ? "expired" : row.status;
    throw conflict(`reservation ${id} is ${what}: reserve again`, { id, status: what });
  }
  if (row.session_seq === sessionSeq) return row;
  throw conflict(`reservation ${id} is another session's: only its owner may ${verb} it`, { id });
}

export type ReservationRecord = {
  readonly id: string;
  readonly queue: string;
  readonly status: ReservationStatus;
  readonly sessionId: string;
  readonly note: string | null;
  /** The direct work that it was made for; null when it was made by hand. */
  readonly jobId: string | null;
  readonly reservedAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | null;
};

export type ReserveOptions = {
  readonly note?: string;
  /** While somebody else holds the queue: `true` waits for it, a duration waits that long; default: be told at once. */
  readonly wait?: boolean | Duration;
  /** How long it lasts unless it is renewed; default ten minutes, at most a day. */
  readonly expires?: Duration;
};

export type Reservations = ReturnType<typeof reservationVerbs>;

export function reservationVerbs(engine: Engine, within: Within, tenant: string) {
  const { store } = engine;
  const sessionSeq = (): number => engine.session().seq;
  const lasting = ({ id, expires_at: expiresAt }: ReservationRow): { id: string; expiresAt: number } => ({
    id,
    expiresAt,
  });
  return {
    /** Holds the next turn of a queue: nothing of it starts until the reservation is released, expires, or ends with this
     *  session.
     *
     *  ```ts
     *  const { id } = await book.reservations.reserve("nightly", { wait: "1m", expires: "1h" });
     *  await book.reservations.release(id);
     *  ``` */
    async reserve(queue: string, options: ReserveOptions = {}) {
      refuseUnknown(options, ["note", "wait", "expires"], "reserve");
      checkName(queue, "queue");
      const { note = null, wait = false, expires = limits.reservationMs } = options;
      const lastsMs = durationMs(expires, "expires", { min: 1, max: limits.reservationMsMax });
      const waitMs = wait === true ? limits.durationMsMax : wait === false ? 0 : durationMs(wait, "wait");
      const ask = (): Promise<ReservationRow | Refused> =>
        within(async (tx) => {
          const lane = await laneOf(tx, tx.tenant, queue);
          const asked = await reserveLane(tx, engine, { lane, sessionSeq: sessionSeq(), note, lastsMs });
          return "made" in asked ? asked.made : refusedBy(tx, queue, asked.holder);
        });
      return lasting(await waitForTurn(store, waitMs, ask));
    },
    /** As long again as it lasts, from now; only by its owner. */
    renew: async (id: string) => lasting(await within((tx) => renewReservation(tx, id, sessionSeq()))),
    release: (id: string) => within((tx) => releaseReservation(tx, engine, id, sessionSeq())),
    /** Those that are held, or with `all` every one there was, newest first. */
    async list(options: { readonly all?: boolean } = {}): Promise<ReservationRecord[]> {
      refuseUnknown(options, ["all"], "the list of reservations");
      const which = options.all === true ? sql`` : sql`and reservation.status = 'active'`;
      return store.readHeavy<ReservationRecord>(sql`select reservation.id, lane.queue, reservation.status,
          session.id as "sessionId", reservation.note, reservation.job_id as "jobId",
          reservation.reserved_at as "reservedAt", reservation.expires_at as "expiresAt", reservation.ended_at as "endedAt"
        from daybook_reservation reservation join daybook_lane lane on lane.seq = reservation.lane_seq
        join daybook_session session on session.seq = reservation.session_seq
        where reservation.tenant_id = ${tenant} ${which} order by reservation.seq desc limit 500`);
    },
  };
}

/** Another session holds the queue, until then at the latest: a reservation that is never released expires. */
export type Refused = { readonly refusal: DaybookError; readonly expiresInMs: number };

/** Asks until the turn is granted, for at most `ms`; with 0 it asks once and throws the refusal. Whoever ends a
 *  reservation wakes those who wait, in every process. */
export function waitForTurn<T extends object>(store: Store, ms: number, ask: () => Promise<T | Refused>): Promise<T> {
  return awaitEnd(store, "a turn", ms, async (waited) => {
    const asked = await ask();
    if (!("refusal" in asked)) return { ended: asked };
    if (ms === 0) throw asked.refusal;
    if (waited !== undefined) throw new DaybookError("timeout", asked.refusal.message, asked.refusal);
    return { waitsFor: {}, atMostMs: asked.expiresInMs };
  });
}

/** What a caller is told that asked for a queue which is held, with `own` by this very process. */
export async function refusedBy(
  tx: Tx,
  queue: string,
  holder: ReservationRow | undefined,
  own = false,
): Promise<Refused> {
  const session = await tx.get<{ id: string }>(sql`select id from daybook_session session
    where seq = ${holder?.session_seq ?? null}`);
  const until = holder === undefined ? "" : ` until ${new Date(holder.expires_at).toISOString()} unless it is renewed`;
  const refusal = conflict(
    `queue "${queue}" is reserved by session ${session?.id ?? "?"}${until}: ` +
      (own ? "this process holds it itself, so release it first" : "wait for it, or ask again later"),
    { queue, reservation: holder?.id ?? null, sessionId: session?.id ?? null },
  );
  return { refusal, expiresInMs: Math.max(0, (holder?.expires_at ?? tx.now) - tx.now) + 1 };
}

/** What a worker that serves one reservation looks for. */
export type Reserved = { readonly id: string; readonly jobSeq: number; readonly laneSeq: number };

/** The claim of a worker that serves a reservation: its own job, once nothing else runs in the lane. */
export async function claimReserved(tx: Tx, by: Starter, reserved: Reserved): Promise<Claim> {
  // Claims that were under way when the lane was reserved have committed after this, and are seen by the next statement.
  await closeLane(tx, reserved.laneSeq);
  const none = noClaim();
  const busy = await tx.all<{ seq: number }>(sql`select seq from daybook_line
    where status = 'running' and lane_seq = ${reserved.laneSeq}`);
  if (busy.length > 0) return (await isEnding(tx, busy)) ? { ...none, more: true, contended: true } : none;
  const job = await tx.get<Startable>(sql`select ${startableColumns}
    from daybook_line line cross join daybook_job job cross join daybook_reservation reservation
    where line.seq = ${reserved.jobSeq} and line.status = 'waiting' and line.waits_for = 'reservation' and job.seq = line.seq
      and reservation.tenant_id = job.tenant_id and reservation.id = ${reserved.id}
      and reservation.status = 'active' and reservation.session_seq = ${by.claimer.sessionSeq}`);
  const lane = await tx.get<LaneRow>(sql`select * from daybook_lane where seq = ${reserved.laneSeq}`);
  if (job === undefined || lane === undefined) return none;
  if ((await tryNames(tx, limitNames([job]))).size > 0) return { ...none, more: true, contended: true };
  const permits = await createPermits(tx, { direct: true }).take(job);
  // It is not in line, so no release lets it in when the rate opens.
  if ("waitsFor" in permits) return { ...none, opensAt: permits.waitsFor === "time" ? permits.until : null };
  // On PostgreSQL another transaction may be moving or cancelling it.
  if (!(await queueOne(tx, job.seq, "reservation", { passBy: true }))) return { ...none, more: true, contended: true };
  const jobs = await start(tx, by, lane.queue, [job]);
  await writePermits(tx, permits);
  return { ...none, jobs };
}

// A settle wakes the holder of its lane. One that looked for a holder before this reservation was made does not, and its commit is
// not seen yet; but it still holds the row.
async function isEnding(tx: Tx, running: readonly { readonly seq: number }[]): Promise<boolean> {
  if (tx.dialect === "sqlite") return false;
  const seqs = running.map(({ seq }) => seq);
  const free = await tx.all(sql`select seq from daybook_line
    where seq ${anyOf("integer", seqs)} for key share skip locked`);
  return free.length < seqs.length;
}
