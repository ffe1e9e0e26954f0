// Recovery as an explicit command: what a worker's sweep does, or would do.
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import { endOrphans } from "./command/orphan.ts";
import type { Engine } from "./engine.ts";
import { sweep } from "./rescue.ts";

export type Recovery = {
  readonly dryRun: boolean;
  /** Runs of sessions that have ended. */
  readonly lost: number;
  /** Reservations of sessions that have ended. */
  readonly reservations: number;
  /** How much was ended or released in all; 0 in a dry run. */
  readonly recovered: number;
};

export async function recover(engine: Engine, options: { readonly dryRun?: boolean }): Promise<Recovery> {
  refuseUnknown(options, ["dryRun"], "recover");
  const [found] = await engine.store.readHeavy<{ lost: number; reservations: number }>(sql`select
    (select count(*) from job join session on session.seq = job.session_seq
      where job.status = 'running' and session.status <> 'running') as lost,
    (select count(*) from reservation join session on session.seq = reservation.session_seq
      where reservation.status = 'active' and session.status <> 'running') as reservations`);
  const dryRun = options.dryRun ?? false;
  const { lost = 0, reservations = 0 } = found ?? {};
  if (dryRun) return { dryRun, lost, reservations, recovered: 0 };
  const recovered = await sweep(engine);
  // A worker goes on meanwhile; whoever asked may be gone before the programs have had their time to end.
  await endOrphans(engine);
  return { dryRun, lost, reservations, recovered };
}
