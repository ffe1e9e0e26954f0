// Direct work without the worker that serves it, so that a test can take its steps one by one.
import { job } from "../../src/index.ts";
import type { Claim } from "../../src/jobs/claim/claim.ts";
import { reservationVerbs, type Reserved, type Reservations } from "../../src/jobs/direct/reservation.ts";
import { prepareJob, type AnyJob } from "../../src/jobs/define.ts";
import { reserveFor } from "../../src/jobs/direct/run-now.ts";
import { neverBlamed } from "../../src/jobs/settle/settle.ts";
import type { SessionKey } from "../../src/telemetry/session.ts";
import type { TestEngine } from "./open-engine.ts";

/** However often it is lost it is made again where it stood, and need not run alone. */
export const work = job("work", { attempts: 1, losses: neverBlamed, run: () => undefined });

export type DirectTurn = Reserved & { readonly jobId: string; readonly by: SessionKey };

export function reservationsOf(at: TestEngine, by: SessionKey = at.session, tenant = "default"): Reservations {
  return reservationVerbs({ ...at.engine, session: () => by }, (unit) => at.store.write(unit, { tenant }), tenant);
}

type AskOptions = { by?: SessionKey; tenant?: string; queue?: string; does?: AnyJob };

/** Holds the queue and makes the job that waits for it, as `runNow` does; throws when somebody else holds it. */
export async function askForTurn(
  at: TestEngine,
  { by = at.session, tenant = "default", queue = "default", does = work }: AskOptions = {},
): Promise<DirectTurn> {
  const prepared = await prepareJob(does, {}, { queue, attempts: 1, losses: 0 });
  const engine = { ...at.engine, session: () => by };
  const asked = await at.store.write((tx) => reserveFor(tx, engine, prepared), { tenant });
  if ("refusal" in asked) throw asked.refusal;
  return { ...asked, by };
}

/** One turn of the worker that serves it. */
export async function takeDirect(at: TestEngine, turn: DirectTurn): Promise<Claim> {
  return (await at.turn(1, { ...at.claimer(turn.by.seq), reserved: turn })).claim;
}

/** Its process is found dead; what becomes of what it held is the sweep's. */
export async function declareDead(at: TestEngine, { seq }: SessionKey): Promise<void> {
  await at.run(`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${seq}`);
}
