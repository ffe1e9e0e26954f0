// A reservation holds the next turn of a lane: what runs there goes on, nothing else starts, and the order of the line is
// untouched. It belongs to a session, ends with it, and lasts ten minutes, or as long as was asked, unless its owner renews it.
//
//   running ──► direct ──► queue
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, forUpdate, indexedBy } from "../../storage/word.ts";
import { isAlive } from "../../telemetry/session.ts";
import { tellCancelled } from "../cancel.ts";
import { closeLane } from "../gate.ts";
import type { JobHooks } from "../hooks.ts";
import { doneChannel, jobsChannel } from "../job.ts";
import { cancelInLine } from "../state.ts";

export type ReservationStatus = "active" | "released" | "expired";

export type ReservationRow = {
  seq: number;
  tenant_id: string;
  id: string;
  lane_seq: number;
  session_seq: number;
  note: string | null;
  job_id: string | null;
  reserved_at: number;
  expires_at: number;
  lasts_ms: number;
  ended_at: number | null;
  status: ReservationStatus;
};

type Asked = {
  readonly lane: number;
  readonly sessionSeq: number;
  readonly note: string | null;
  readonly jobId?: string | null;
  readonly lastsMs?: number;
};

/** The reservation, or who holds the lane. The unique index decides between two that ask at once. */
export async function reserveLane(
  tx: Tx,
  hooks: JobHooks,
  { lane, sessionSeq, note, jobId = null, lastsMs = limits.reservationMs }: Asked,
): Promise<{ readonly made: ReservationRow } | { readonly holder: ReservationRow | undefined }> {
  // A book that closes lets go what it holds, and whoever waits for that in the same book must not get it: nobody would be left
  // to release it.
  if (!(await isAlive(tx, sessionSeq))) throw new DaybookError("closed", "the session of this book has ended");
  await closeLane(tx, lane);
  await expire(tx, hooks, sql`lane_seq = ${lane} and expires_at <= ${tx.now}`);
  const made = await tx.get<ReservationRow>(sql`insert into daybook_reservation
      (tenant_id, id, lane_seq, session_seq, note, job_id, reserved_at, expires_at, lasts_ms)
    values (${tx.tenant}, ${tx.ids()}, ${lane}, ${sessionSeq}, ${note}, ${jobId}, ${tx.now},
      ${tx.now + lastsMs}, ${lastsMs})
    on conflict do nothing returning *`);
  if (made !== undefined) return { made };
  const holder = await tx.get<ReservationRow>(
    sql`select * from daybook_reservation reservation where lane_seq = ${lane} and status = 'active'`,
  );
  return { holder };
}

export async function renewReservation(tx: Tx, id: string, sessionSeq: number): Promise<ReservationRow> {
  const row = await ownReservation(tx, id, sessionSeq, "renew");
  const expiresAt = tx.now + row.lasts_ms;
  await tx.run(sql`update daybook_reservation as reservation set expires_at = ${expiresAt} where seq = ${row.seq}`);
  return { ...row, expires_at: expiresAt };
}

export async function releaseReservation(tx: Tx, hooks: JobHooks, id: string, sessionSeq: number): Promise<void> {
  await endReservations(tx, hooks, [await ownReservation(tx, id, sessionSeq, "release")], "released");
}

/** Those of a session that has ended: the queues go on. */
export function freeReservationsOf(tx: Tx, hooks: JobHooks, sessionSeq: number): Promise<number> {
  return expire(tx, hooks, sql`session_seq = ${sessionSeq}`);
}

/** Those that nobody renewed in time: claims pass them by already, and who waits for one waits in vain. */
export function expireReservations(tx: Tx, hooks: JobHooks): Promise<number> {
  return expire(tx, hooks, sql`expires_at <= ${tx.now}`);
}

async function expire(tx: Tx, hooks: JobHooks, which: Sql): Promise<number> {
  const held = await tx.all<ReservationRow>(sql`select * from daybook_reservation reservation
    where status = 'active' and ${which} order by seq ${forUpdate}`);
  await endReservations(tx, hooks, held, "expired");
  return held.length;
}

/** Ends reservations. A direct job that has not begun has nobody left who waits for it, and never runs. */
async function endReservations(
  tx: Tx,
  hooks: JobHooks,
  rows: readonly ReservationRow[],
  status: "released" | "expired",
): Promise<void> {
  if (rows.length === 0) return;
  const seqs = rows.map(({ seq }) => seq);
  await tx.run(
    sql`update daybook_reservation as reservation set status = ${status}, ended_at = ${tx.now} where seq ${anyOf("integer", seqs)}`,
  );
  for (const { id } of rows) {
    const unbegun = await cancelInLine(
      tx,
      sql`select line.seq from daybook_line line ${indexedBy("jobs_waiting")} where line.status = 'waiting'
        and line.waits_for = 'reservation' and line.waits_key = ${id} and line.waits_key is not null`,
    );
    for (const row of unbegun) await tellCancelled(tx, hooks, row);
  }
  tx.wake(jobsChannel);
  tx.wake(doneChannel);
}

async function ownReservation(tx: Tx, id: string, sessionSeq: number, verb: string): Promise<ReservationRow> {
  const row = await tx.get<ReservationRow>(
    sql`select * from daybook_reservation reservation where tenant_id = ${tx.tenant} and id = ${id} ${forUpdate}`,
  );
  if (row === undefined) throw new DaybookError("not_found", `there is no reservation ${id}`, { details: { id } });
  const expired = row.status === "active" && row.expires_at <= tx.now;
  if (row.status !== "active" || expired) {
    const what = expired ? "expired" : row.status;
    throw new DaybookError("conflict", `reservation ${id} is ${what}: reserve again`, {
      details: { id, status: what },
    });
  }
  if (row.session_seq === sessionSeq) return row;
  throw new DaybookError("conflict", `reservation ${id} is another session's: only its owner may ${verb} it`, {
    details: { id },
  });
}
