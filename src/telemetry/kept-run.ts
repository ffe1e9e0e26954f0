// Runs that must not be removed: those that somebody pinned, and those that are not in the rollups yet.
import { DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { storableText } from "../core/storable-text.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";

/** Of `run`: somebody pinned it. */
export const runIsPinned = sql`exists (select 1 from daybook_run_pin run_pin
  where run_pin.tenant_id = run.tenant_id and run_pin.run_id = run.id)`;

/** Of `run`, in the transaction that removes runs: the mark only moves on, so what is folded stays so. */
export const runIsKept = sql`(run.seq > (select folded_seq from daybook_run_fold) or ${runIsPinned})`;

export async function keptRuns(tx: Tx, tenant: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await tx.all<{ id: string }>(
    sql`select id from daybook_run run where tenant_id = ${tenant} and id ${anyOf("text", ids)} and ${runIsKept}`,
  );
  return new Set(rows.map((row) => row.id));
}

/** Pinning again changes the note. */
export async function pinRun(tx: Tx, id: string, note: string | null): Promise<void> {
  const pinned = await tx.run(sql`insert into daybook_run_pin (tenant_id, run_id, pinned_at, note)
    select tenant_id, id, ${tx.now}, ${note === null ? null : storableText(note, limits.noteBytesMax)}
    from daybook_run where tenant_id = ${tx.tenant} and id = ${id}
    on conflict (tenant_id, run_id) do update set note = excluded.note`);
  if (pinned === 0) throw new DaybookError("not_found", `there is no ended run ${id}`, { details: { id } });
}

/** False when it was not pinned. */
export async function unpinRun(tx: Tx, id: string): Promise<boolean> {
  return (await tx.run(sql`delete from daybook_run_pin where tenant_id = ${tx.tenant} and run_id = ${id}`)) > 0;
}
