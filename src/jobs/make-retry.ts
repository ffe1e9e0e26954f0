// The next job of a chain: the same work once more, made in the transaction in which the last try ended.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { insertJobs, type NewJob } from "./insert.ts";
import { jobNow, jobsChannel, type JobRow } from "./job.ts";
import { keptPlace } from "./line/room.ts";
import type { Again } from "./outcome.ts";
import { backoffMs, type Backoff } from "./retry.ts";

type By = { readonly origin?: "manual"; readonly behind?: string | undefined };

/** The next job of the chain. It takes over a key that is held until the work is done. `behind` is the group whose current
 *  job it waits for. */
export async function makeRetry(tx: Tx, old: JobRow, again: Again & By): Promise<string> {
  const backoff = old.backoff === null ? null : (JSON.parse(old.backoff) as Backoff);
  const planned = again.backoff ? backoffMs(backoff, old.attempt, tx.random) : 0;
  const delay = Math.max(planned, again.atLeastMs ?? 0);
  const reason = again.behind !== undefined ? "group" : delay > 0 ? "time" : null;
  const row: NewJob = {
    // What a job is and belongs to, its next try is and belongs to as well; an insert takes the columns of a new job alone.
    ...old,
    id: tx.ids(),
    idempotency_key: null,
    status: reason === null ? "queued" : "waiting",
    waits_for: reason,
    waits_key: again.behind ?? null,
    created_at: tx.now,
    available_at: tx.now + delay,
    origin: again.origin ?? "retry",
    attempt: again.attempt,
    losses: again.losses,
    retry_of: old.seq,
    chain_seq: old.chain_seq ?? old.seq,
    alone: again.alone,
    position: again.keepsPlace === true ? await keptPlace(tx, old) : null,
    holdsKey: old.key_scope === "done",
  };
  if ((await insertJobs(tx, [row])) !== 1) {
    if (again.origin === "manual") throw await refusal(tx, old);
    // The chain goes on without a key that somebody else has.
    await insertJobs(tx, [{ ...row, holdsKey: false }]);
  }
  tx.wake(jobsChannel);
  return row.id;
}

async function refusal(tx: Tx, old: JobRow): Promise<DaybookError> {
  const holder = await tx.get<{ id: string; status: string }>(sql`select job.id, job.status
    from daybook_job_key held cross join ${jobNow}
    where held.tenant_id = ${old.tenant_id} and held.name = ${old.name} and held.key = ${old.key}
      and job.seq = held.job_seq`);
  const why =
    holder === undefined
      ? `job ${old.id} has been retried already`
      : `key ${quote(old.key)} of ${old.name} is taken by job ${holder.id}, which is ${holder.status}: wait for it`;
  return new DaybookError("conflict", why, { details: { id: old.id } });
}
