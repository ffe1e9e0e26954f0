// A step that is on disk: one row for each place of a chain.
import { DaybookError } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { forShare } from "../storage/word.ts";
import type { ClaimedJob } from "./claim.ts";

export type KeptStep = { readonly name: string; readonly result: string | null };

export async function readStep(
  store: Store,
  tenant: string,
  chain: number,
  place: number,
): Promise<KeptStep | undefined> {
  const [row] = await store.read<KeptStep>(sql`select name, result from daybook_job_step job_step
    where tenant_id = ${tenant} and chain_seq = ${chain} and place = ${place}`);
  return row;
}

/** Keeps a step of a run that is still ours. On PostgreSQL the lock makes whoever ends the run wait for our commit, or us
 *  for theirs: a step of a lost owner must not appear after the next run has looked for it. */
export async function keepStep(
  tx: Tx,
  job: Pick<ClaimedJob, "id" | "seq" | "run_id">,
  { place, name, result }: KeptStep & { readonly place: number },
): Promise<void> {
  const kept =
    await tx.run(sql`insert into daybook_job_step (tenant_id, chain_seq, place, name, result, run_id, done_at)
    select job.tenant_id, coalesce(job.chain_seq, job.seq), ${place}, ${name}, ${result}, held.run_id, ${tx.now}
    from (select seq, run_id from daybook_line
      where seq = ${job.seq} and run_id = ${job.run_id} and started_at is not null ${forShare}) as held
    cross join daybook_job job where job.seq = held.seq`);
  if (kept === 1) return;
  throw new DaybookError(
    "conflict",
    `job ${job.id} is no longer this process's, so step "${name}" was not kept: it was cancelled, timed out or lost`,
    { details: { id: job.id, place, step: name } },
  );
}
