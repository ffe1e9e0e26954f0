// Recovery as an explicit command: what a worker's sweep does, or would do.
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import { anyOf } from "../storage/word.ts";
import { goneSessions } from "../telemetry/gone-sessions.ts";
import { endOrphans } from "./command/orphan.ts";
import type { Engine } from "./engine.ts";
import { sweep } from "./rescue.ts";

export type Recovery = {
  readonly dryRun: boolean;
  /** Runs of sessions that have ended, or whose process is gone from this host. */
  readonly lost: number;
  /** Their reservations. */
  readonly reservations: number;
  /** How much was ended or released in all; 0 in a dry run. */
  readonly recovered: number;
};

export async function recover(engine: Engine, options: { readonly dryRun?: boolean }): Promise<Recovery> {
  refuseUnknown(options, ["dryRun"], "recover");
  // One that was killed a moment ago is called running until somebody looks for it.
  const gone = (await goneSessions(engine.store)).map(({ seq }) => seq);
  const isOver = sql`(session.status <> 'running' or session.seq ${anyOf("integer", gone)})`;
  const [found] = await engine.store.readHeavy<{ lost: number; reservations: number }>(sql`select
    (select count(*) from daybook_line line join daybook_session session on session.seq = line.session_seq
      where line.status = 'running' and ${isOver}) as lost,
    (select count(*) from daybook_reservation reservation join daybook_session session on session.seq = reservation.session_seq
      where reservation.status = 'active' and ${isOver}) as reservations`);
  const dryRun = options.dryRun ?? false;
  const { lost = 0, reservations = 0 } = found ?? {};
  if (dryRun) return { dryRun, lost, reservations, recovered: 0 };
  const recovered = await sweep(engine);
  // A worker goes on meanwhile; whoever asked may be gone before the programs have had their time to end.
  await endOrphans(engine);
  return { dryRun, lost, reservations, recovered };
}
