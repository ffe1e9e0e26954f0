// Which names the workers of a session run, and in which queues.
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { eachRow } from "../storage/word.ts";
import type { Claimer } from "./claim/claim.ts";
import type { Engine } from "./engine.ts";

/** Writes down which names this session runs, and in which queues, so that explain can say which host a job waits for. */
export async function hostNames(engine: Engine, { hosts, queues, sessionSeq }: Claimer): Promise<void> {
  if (hosts.size === 0) return;
  await engine.store.write((tx) => writeHosted(tx, sessionSeq, hosts, queues));
}

/** `queues` null: all. */
export async function writeHosted(
  tx: Tx,
  session_seq: number,
  names: Iterable<string>,
  queues: Iterable<string> | null,
): Promise<void> {
  const hosted = [...names].map((name) => ({ session_seq, name }));
  const served = [...(queues ?? [null])].map((queue) => ({ session_seq, queue }));
  await tx.run(sql`insert into daybook_session_host (session_seq, name)
    ${eachRow({ session_seq: "integer", name: "text" }, hosted)} on conflict do nothing`);
  await tx.run(sql`insert into daybook_session_queue (session_seq, queue)
    ${eachRow({ session_seq: "integer", queue: "text" }, served)} on conflict do nothing`);
}

/** Whether a running worker of `session` serves that queue. */
export function servesQueue(queue: Sql): Sql {
  return sql`exists (select 1 from daybook_session_queue served
    where served.session_seq = session.seq and (served.queue is null or served.queue = ${queue}))`;
}
