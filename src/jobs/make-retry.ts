// The next job of a chain: the same work once more, made in the transaction in which the last try ended.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { insertJobs, type NewJob } from "./insert.ts";
import { jobsChannel, type JobRow } from "./job.ts";
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
    ...pickKept(old),
    id: tx.ids(),
    status: reason === null ? "queued" : "waiting",
    waits_for: reason,
    waits_key: again.behind ?? null,
    created_at: tx.now,
    available_at: tx.now + delay,
    origin: again.origin ?? "retry",
    attempt: again.attempt,
    losses: again.losses,
    retry_of: old.seq,
    alone: again.alone ? 1 : 0,
    key_held: old.key_scope === "done" ? old.key : null,
    key_until: null,
    idempotency_key: null,
    ...belongings(old),
  };
  if ((await insertJobs(tx, [row])) !== 1) {
    if (again.origin === "manual") throw await refusal(tx, old);
    // The chain goes on without a key that somebody else has.
    await insertJobs(tx, [{ ...row, key_held: null }]);
  }
  tx.wake(jobsChannel);
  return row.id;
}

async function refusal(tx: Tx, old: JobRow): Promise<DaybookError> {
  const holder = await tx.get<{ id: string; status: string }>(sql`select id, status from job
    where tenant_id = ${old.tenant_id} and name = ${old.name} and key_held = ${old.key}`);
  const why =
    holder === undefined
      ? `job ${old.id} has been retried already`
      : `key ${quote(old.key)} of ${old.name} is taken by job ${holder.id}, which is ${holder.status}: wait for it`;
  return new DaybookError("conflict", why, { details: { id: old.id } });
}

// What a job is part of, its next try is part of as well; only then does anything change hands.
function belongings(old: JobRow): Partial<NewJob> {
  const {
    template_id,
    group_seq,
    group_slot,
    awaited,
    kind,
    kind_seq,
    about,
    app,
    instance,
    registration,
    traceparent,
  } = old;
  return {
    ...{ template_id, group_seq, group_slot, awaited, kind, kind_seq, about, app, instance, registration, traceparent },
    chain_seq: old.chain_seq ?? old.seq,
  };
}

function pickKept(old: JobRow): Pick<NewJob, Exclude<keyof NewJob, "id" | "status">> {
  const { tenant_id, lane_seq, name, waits_for, waits_key, priority, created_at, available_at, params, origin } = old;
  const { attempt, attempts, losses, losses_max, backoff, timeout_ms, retry_of, alone, key, key_held, key_scope } = old;
  const { key_until, idempotency_key, limits, limit_key, tags, cause_run_id, root_run_id } = old;
  return {
    ...{ tenant_id, lane_seq, name, waits_for, waits_key, priority, created_at, available_at, params, origin },
    ...{ attempt, attempts, losses, losses_max, backoff, timeout_ms, retry_of, alone, key, key_held, key_scope },
    ...{ key_until, idempotency_key, limits, limit_key, tags, cause_run_id, root_run_id },
  };
}
