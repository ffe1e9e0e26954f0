// What a user does with reservations: look at them, and hold a queue for work of their own.
import { durationMs, type Duration } from "../../core/duration.ts";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import type { Engine } from "../engine.ts";
import type { Within } from "../jobs.ts";
import { laneOf } from "../lane.ts";
import { awaitEnd } from "../waiters.ts";
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

export type ReserveOptions = {
  readonly note?: string;
  /** While somebody else holds the queue: `true` waits for it, a duration waits that long; default: be told at once. */
  readonly wait?: boolean | Duration;
  /** How long it lasts unless it is renewed; default ten minutes, at most a day. */
  readonly expires?: Duration;
};

export type Reservations = {
  /** Holds the next turn of a queue: nothing of it starts until the reservation is released, expires, or ends with this
   *  session.
   *
   *  ```ts
   *  const { id } = await book.reservations.reserve("nightly", { wait: "1m", expires: "1h" });
   *  await book.reservations.release(id);
   *  ``` */
  reserve(queue: string, options?: ReserveOptions): Promise<{ id: string; expiresAt: number }>;
  /** As long again as it lasts, from now; only by its owner. */
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
      refuseUnknown(options, ["note", "wait", "expires"], "reserve");
      checkName(queue, "queue");
      const { note = null, wait = false, expires = limits.reservationMs } = options;
      const lastsMs = durationMs(expires, "expires", { min: 1, max: limits.reservationMsMax });
      const waitMs = wait === true ? limits.durationMsMax : wait === false ? 0 : durationMs(wait, "wait");
      const ask = (): Promise<ReservationRow | Refused> =>
        within(async (tx) => {
          const lane = await laneOf(tx, tx.tenant, queue);
          const asked = await reserveLane(tx, hooks, { lane, sessionSeq: sessionSeq(), note, lastsMs });
          return "made" in asked ? asked.made : refusedBy(tx, queue, asked.holder);
        });
      const row = await waitForTurn(store, waitMs, ask);
      return { id: row.id, expiresAt: row.expires_at };
    },
    async renew(id) {
      const row = await within((tx) => renewReservation(tx, id, sessionSeq()));
      return { id: row.id, expiresAt: row.expires_at };
    },
    release: (id) => within((tx) => releaseReservation(tx, hooks, id, sessionSeq())),
    list: (options = {}) => listReservations(store, tenant, options),
  };
}

/** Somebody else holds the queue, until then at the latest: it may never be released, and then it expires. */
export type Refused = { readonly refusal: DaybookError; readonly expiresInMs: number };

/** Asks until the turn is granted, for at most `waitMs`; with 0 it asks once and throws the refusal. Whoever ends a
 *  reservation wakes those who wait, in every process. */
export function waitForTurn<T extends object>(
  store: Store,
  waitMs: number,
  ask: () => Promise<T | Refused>,
): Promise<T> {
  return awaitEnd(store, "a turn", waitMs, async (waited) => {
    const asked = await ask();
    if (!("refusal" in asked)) return { ended: asked };
    if (waitMs === 0) throw asked.refusal;
    if (waited !== undefined) throw new DaybookError("timeout", asked.refusal.message, asked.refusal);
    return { waitsFor: {}, atMostMs: asked.expiresInMs };
  });
}

/** What one is told who asked for a queue that is held. */
export async function refusedBy(
  tx: Tx,
  queue: string,
  holder: ReservationRow | undefined,
  sessionSeq?: number,
): Promise<Refused> {
  const session = await tx.get<{ id: string }>(
    sql`select id from daybook_session session where seq = ${holder?.session_seq ?? null}`,
  );
  const own = sessionSeq !== undefined && holder?.session_seq === sessionSeq;
  const until = holder === undefined ? "" : ` until ${new Date(holder.expires_at).toISOString()} unless it is renewed`;
  const refusal = new DaybookError(
    "conflict",
    `queue "${queue}" is reserved by session ${session?.id ?? "?"}${until}: ` +
      (own ? "this process holds it itself, so release it first" : "wait for it, or ask again later"),
    { details: { queue, reservation: holder?.id ?? null, sessionId: session?.id ?? null } },
  );
  return { refusal, expiresInMs: Math.max(0, (holder?.expires_at ?? tx.now) - tx.now) + 1 };
}

async function listReservations(
  store: Store,
  tenant: string,
  options: { readonly all?: boolean },
): Promise<ReservationRecord[]> {
  refuseUnknown(options, ["all"], "the list of reservations");
  const which = options.all === true ? sql`` : sql`and reservation.status = 'active'`;
  return store.readHeavy<ReservationRecord>(sql`select reservation.id, lane.queue, reservation.status,
      session.id as "sessionId", reservation.note, reservation.job_id as "jobId", reservation.reserved_at as "reservedAt",
      reservation.expires_at as "expiresAt", reservation.ended_at as "endedAt"
    from daybook_reservation reservation join daybook_lane lane on lane.seq = reservation.lane_seq
    join daybook_session session on session.seq = reservation.session_seq
    where reservation.tenant_id = ${tenant} ${which} order by reservation.seq desc limit 500`);
}
