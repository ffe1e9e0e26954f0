// What a user does with reservations: look at them, and hold a queue for work of their own.
import { DaybookError } from "../../core/error.ts";
import { checkName } from "../../core/name.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import type { Engine } from "../engine.ts";
import type { Within } from "../jobs.ts";
import { laneOf } from "../lane.ts";
import { releaseReservation, renewReservation, reserveLane } from "./reservation.ts";
import type { ReservationRow, ReservationStatus } from "./reservation.ts";

export type ReservationRecord = {
  readonly id: string;
  readonly queue: string;
  readonly status: ReservationStatus;
  /** The session that holds it. */
  readonly sessionId: string;
  readonly note: string | null;
  /** The direct work that it was made for; null when it was made by hand. */
  readonly jobId: string | null;
  readonly reservedAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | null;
};

export type Reservations = {
  /** Holds the next turn of a queue: nothing of it starts until the reservation is released, expires after ten minutes,
   *  or ends with this session. Refused while somebody else holds it. */
  reserve(queue: string, options?: { readonly note?: string }): Promise<{ id: string; expiresAt: number }>;
  /** Ten minutes from now; only by its owner. */
  renew(id: string): Promise<{ id: string; expiresAt: number }>;
  release(id: string): Promise<void>;
  /** Those that are held, or with `all` every one there was, newest first. */
  list(options?: { readonly all?: boolean }): Promise<ReservationRecord[]>;
};

export function reservationVerbs(engine: Engine, within: Within, tenant: string): Reservations {
  const { store, hooks } = engine;
  const sessionSeq = (): number => engine.session().seq;
  return {
    async reserve(queue, options = {}) {
      refuseUnknown(options, ["note"], "reserve");
      checkName(queue, "queue");
      const row = await within(
        async (tx) => {
          const lane = await laneOf(tx, tx.tenant, queue);
          const asked = await reserveLane(tx, hooks, { lane, sessionSeq: sessionSeq(), note: options.note ?? null });
          if ("made" in asked) return asked.made;
          throw await heldByOther(tx, queue, asked.holder);
        },
        { shared: false },
      );
      return { id: row.id, expiresAt: row.expires_at };
    },
    async renew(id) {
      const row = await within((tx) => renewReservation(tx, id, sessionSeq()), { shared: false });
      return { id: row.id, expiresAt: row.expires_at };
    },
    release: (id) => within((tx) => releaseReservation(tx, hooks, id, sessionSeq()), { shared: false }),
    list: (options = {}) => listReservations(store, tenant, options),
  };
}

/** The error for one who asked for a queue that is held. */
export async function heldByOther(
  tx: Tx,
  queue: string,
  holder: ReservationRow | undefined,
  sessionSeq?: number,
): Promise<DaybookError> {
  const session = await tx.get<{ id: string }>(sql`select id from session where seq = ${holder?.session_seq ?? null}`);
  const own = sessionSeq !== undefined && holder?.session_seq === sessionSeq;
  const until = holder === undefined ? "" : ` until ${new Date(holder.expires_at).toISOString()} unless it is renewed`;
  return new DaybookError(
    "conflict",
    `queue "${queue}" is reserved by session ${session?.id ?? "?"}${until}: ` +
      (own ? "this process holds it itself, so release it first" : "wait for it, or ask again later"),
    { details: { queue, reservation: holder?.id ?? null, sessionId: session?.id ?? null } },
  );
}

type Row = ReservationRow & { queue: string; session_id: string };

async function listReservations(
  store: Store,
  tenant: string,
  options: { readonly all?: boolean },
): Promise<ReservationRecord[]> {
  refuseUnknown(options, ["all"], "the list of reservations");
  const which = options.all === true ? sql`` : sql`and reservation.status = 'active'`;
  const rows = await store.readHeavy<Row>(sql`select reservation.*, lane.queue, session.id as session_id
    from reservation join lane on lane.seq = reservation.lane_seq join session on session.seq = reservation.session_seq
    where reservation.tenant_id = ${tenant} ${which} order by reservation.seq desc limit 500`);
  return rows.map((row) => ({
    id: row.id,
    queue: row.queue,
    status: row.status,
    sessionId: row.session_id,
    note: row.note,
    jobId: row.job_id,
    reservedAt: row.reserved_at,
    expiresAt: row.expires_at,
    endedAt: row.ended_at,
  }));
}
