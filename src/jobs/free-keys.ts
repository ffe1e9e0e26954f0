import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { JobRow } from "./job.ts";

/** The keys of jobs that ended are free; one that is taken for a window of time is free when that is over. */
export async function freeKeys(tx: Tx, ended: readonly Pick<JobRow, "seq" | "key_scope">[]): Promise<void> {
  const seqs = ended.flatMap((job) => (job.key_scope === "done" || job.key_scope === "queued" ? job.seq : []));
  if (seqs.length > 0) await tx.run(sql`delete from daybook_job_key where job_seq ${anyOf("integer", seqs)}`);
}
