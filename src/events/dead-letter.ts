// A dead letter is a delivery whose last try failed. An event and a listener have at most one. Until it ends, it keeps its event
// and its job in the book, and later deliveries of an ordered key behind it.
//
//   (last try fails) ──► dead ──► redriving ──► recovered      its redrive succeeded
//                         ▲  │         │
//                         │  │         └──────► dead           its redrive failed: the same letter, one redrive more
//                         │  │         └──────► discarded      its sink does not take the event any more
//                         │  └────────────────► discarded      with a reason
import { sql, type Sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import type { JobRow } from "../jobs/job.ts";
import type { JobEnded } from "../jobs/kind.ts";
import { pinJob, unpinJob } from "../jobs/retain/bundle.ts";
import { deadLetterTopic, type EventRow } from "./event.ts";
import { deliveryName } from "./listener.ts";
import { insertEvent, newEvent } from "./publish.ts";

export type DeadLetterStatus = "dead" | "redriving" | "recovered" | "discarded";

export type DeadLetterError = { readonly type: string; readonly message: string };

export type DeadLetterRow = {
  readonly seq: number;
  readonly tenant_id: string;
  readonly id: string;
  readonly order_key: string | null;
  readonly job_id: string;
  readonly status: DeadLetterStatus;
  readonly ended_at: number | null;
};

/** Locks and returns the letter of a delivery; undefined when it has none. */
export async function letterOf(tx: Tx, job: JobRow): Promise<DeadLetterRow | undefined> {
  return tx.get<DeadLetterRow>(sql`select * from daybook_dead_letter where tenant_id = ${job.tenant_id}
      and event_seq = ${job.kind_seq} and listener_seq = (${listenerOf(job)}) ${forUpdate}`);
}

/** Writes that the last try of a delivery failed, for the first time or again. */
export async function writeLetter(tx: Tx, job: JobRow, ended: JobEnded): Promise<void> {
  const event = await tx.get<EventRow>(sql`select * from daybook_event where seq = ${job.kind_seq}`);
  if (event === undefined) return;
  const run = await tx.get<{ error_type: string | null; error_message: string | null }>(
    sql`select error_type, error_message from daybook_run where id = ${ended.run?.id ?? ""}`,
  );
  const error = { type: run?.error_type ?? "Error", message: run?.error_message ?? "" };
  await pinJob(tx, job);
  const known = await letterOf(tx, job);
  if (known !== undefined) {
    if (known.job_id !== job.id) await unpinJob(tx, known.job_id);
    await tx.run(sql`update daybook_dead_letter set status = 'dead', ended_at = null, reason = null, job_id = ${job.id},
        attempts = ${job.attempt}, error_type = ${error.type}, error_message = ${error.message}, failed_at = ${tx.now}
      where seq = ${known.seq}`);
    return;
  }
  const id = tx.ids();
  await tx.run(sql`insert into daybook_dead_letter (tenant_id, id, event_seq, listener_seq, order_key, job_id, status, attempts,
      error_type, error_message, first_failed_at, failed_at)
    values (${job.tenant_id}, ${id}, ${event.seq}, (${listenerOf(job)}), ${job.limit_key}, ${job.id}, 'dead',
      ${job.attempt}, ${error.type}, ${error.message}, ${tx.now}, ${tx.now})`);
  // The failed delivery of a dead letter's own event gets a letter but no further event: otherwise this could go on for ever.
  if (event.topic !== deadLetterTopic) await tellDead(tx, { id, job, event, error });
}

type Dead = { readonly id: string; readonly job: JobRow; readonly event: EventRow; readonly error: DeadLetterError };

async function tellDead(tx: Tx, { id, job, event, error }: Dead): Promise<void> {
  const payload = JSON.stringify({
    attempts: job.attempt,
    deadLetterId: id,
    error: { message: error.message, type: error.type },
    eventId: event.id,
    listener: job.name.slice(deliveryName("").length),
    topic: event.topic,
  });
  const parent = { id: event.id, rootId: event.root_event_id, depth: event.chain_depth };
  const row = newEvent(tx, job.tenant_id, { topic: deadLetterTopic, payload }, parent);
  await insertEvent(tx, { ...row, cause_run_id: job.run_id, root_run_id: job.root_run_id ?? job.run_id });
}

export async function setLetterDead(tx: Tx, { seq }: DeadLetterRow): Promise<void> {
  await tx.run(sql`update daybook_dead_letter set status = 'dead' where seq = ${seq}`);
}

/** Ends a letter: retention may then remove its event and its job. */
export async function endLetter(
  tx: Tx,
  letter: DeadLetterRow,
  how: { readonly status: "recovered" | "discarded"; readonly reason: string | null },
): Promise<void> {
  await unpinJob(tx, letter.job_id);
  await tx.run(sql`update daybook_dead_letter set status = ${how.status}, reason = ${how.reason}, ended_at = ${tx.now}
    where seq = ${letter.seq}`);
}

function listenerOf(job: JobRow): Sql {
  return sql`select seq from daybook_listener where tenant_id = ${job.tenant_id}
    and name = ${job.name.slice(deliveryName("").length)}`;
}
