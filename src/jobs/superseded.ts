// Which results came too late: somebody else had ended the run. One that is in the book already did not: the answer to
// its commit was lost, and it was settled a second time.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { jobSuperseded } from "./hooks.ts";
import type { Ending } from "./outcome.ts";

export async function supersededOf(
  tx: Tx,
  endings: readonly Ending[],
  ended: ReadonlySet<string>,
): Promise<readonly Ending[]> {
  if (endings.length === ended.size) return [];
  const refused = endings.filter((ending) => !ended.has(ending.runId));
  const seqs = refused.map((ending) => ending.seq);
  const rows = await tx.all<{ id: string; status: string }>(sql`select id, status from daybook_run
    where job_seq ${anyOf("integer", seqs)}`);
  const kept = new Map(rows.map((row) => [row.id, row.status]));
  return refused.filter((ending) => kept.get(ending.runId) !== ending.status);
}

export function tellSuperseded(superseded: readonly Ending[]): void {
  for (const { job, runId, status } of superseded) jobSuperseded.state({ id: "", name: "", ...job, runId, status });
}
