// What a person does about dead letters: try again, or give up with a reason.
import { lockNames } from "../storage/lock-key.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { storableText } from "../core/storable-text.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import { jobNow, type JobRow } from "../jobs/job.ts";
import { rescheduleJob } from "../jobs/line/edit.ts";
import { makeRetry } from "../jobs/outcome.ts";
import { endLetter, type DeadLetterRow } from "./dead-letter.ts";
import { letNextGo } from "./order.ts";

/** The same delivery once more: the next job of its chain, which may exceed its attempts. Its letter stays until it
 *  succeeds. */
export async function redriveLetter(tx: Tx, id: string, delayMs = 0): Promise<{ jobId: string }> {
  const letter = await hold(tx, id);
  if (letter.status !== "dead") throw refused(letter, "redriven");
  const last = await lastOfChain(tx, letter);
  if (last === undefined || last.finished_at === null) throw refused({ ...letter, status: "redriving" }, "redriven");
  const attempt = last.attempt + 1;
  const allowed = { ...last, attempts: Math.max(last.attempts, attempt) };
  const again = { attempt, losses: 0, alone: last.alone, backoff: false, origin: "manual" } as const;
  const jobId = await makeRetry(tx, allowed, again);
  if (delayMs > 0) {
    await rescheduleJob(tx, { tenant: tx.tenant, id: jobId }, tx.now + delayMs, { retries: true, delayMs });
  }
  await tx.run(
    sql`update daybook_dead_letter set status = 'redriving', redrives = redrives + 1 where seq = ${letter.seq}`,
  );
  return { jobId };
}

/** Gives a letter up. What waits behind it goes on. */
export async function discardLetter(tx: Tx, id: string, reason: string): Promise<void> {
  if (typeof reason !== "string" || reason.trim() === "") {
    throw invalid(`the reason is ${quote(reason)}: say why it is given up, for those who look for it later`);
  }
  // The lock of its order comes first, as it does where a delivery ends.
  const { order_key: key } = await find(tx, id);
  if (key !== null) await lockNames(tx, [`${tx.tenant}\n${key}`]);
  const letter = await hold(tx, id);
  if (letter.status !== "dead") throw refused(letter, "discarded");
  await endLetter(tx, letter, { status: "discarded", reason: storableText(reason, limits.errorMessageBytesMax) });
  await letNextGo(tx, { tenant_id: letter.tenant_id, limit_key: letter.order_key });
}

async function hold(tx: Tx, id: string): Promise<DeadLetterRow> {
  await tx.get(sql`select seq from daybook_dead_letter where tenant_id = ${tx.tenant} and id = ${id} ${forUpdate}`);
  return find(tx, id);
}

async function find(tx: Tx, id: string): Promise<DeadLetterRow> {
  const row = await tx.get<DeadLetterRow>(
    sql`select * from daybook_dead_letter where tenant_id = ${tx.tenant} and id = ${id}`,
  );
  if (row !== undefined) return row;
  throw new DaybookError("not_found", `there is no dead letter ${id}`, { details: { id } });
}

async function lastOfChain(tx: Tx, letter: DeadLetterRow): Promise<JobRow | undefined> {
  return tx.get<JobRow>(sql`with recursive chain (seq) as (
      select seq from daybook_job job where tenant_id = ${letter.tenant_id} and id = ${letter.job_id}
      union all select job.seq from chain cross join daybook_job job where job.retry_of = chain.seq)
    select job.* from chain cross join ${jobNow} where job.seq = chain.seq order by job.seq desc limit 1`);
}

function refused(letter: Pick<DeadLetterRow, "id" | "status">, verb: string): DaybookError {
  const advice = letter.status === "redriving" ? "wait for its redrive, or cancel that job" : "it has ended";
  return new DaybookError("conflict", `dead letter ${letter.id} is ${letter.status} and cannot be ${verb}: ${advice}`, {
    details: { id: letter.id, status: letter.status },
  });
}
