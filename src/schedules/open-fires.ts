// The jobs of schedules that have not ended: what a new slot of theirs meets.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { anyOf, skipLockedOf } from "../storage/word.ts";
import { scheduleKind, type ScheduleRow } from "./schedule.ts";

export type OpenFires = {
  /** By the schedule's number: the ids of its open jobs, oldest first, retries included. */
  readonly busy: Map<number, string[]>;
  /** Schedules whose open jobs are to be cancelled, and one of them is just being ended, started or edited elsewhere. Who
   *  does that may wait for the schedule that we hold, so we do not wait for the job: the slot is decided with the next
   *  look. */
  readonly putOff: ReadonlySet<number>;
};

export async function openFires(tx: Tx, rows: readonly ScheduleRow[]): Promise<OpenFires> {
  const busy = new Map<number, string[]>();
  const putOff = new Set<number>();
  const asked = rows.filter((row) => row.concurrency !== "allow");
  for (const tenant of new Set(asked.map((row) => row.tenant_id))) {
    const own = asked.filter((row) => row.tenant_id === tenant);
    for (const { kind_seq, id } of await read(tx, tenant, own, false)) {
      busy.set(kind_seq, [...(busy.get(kind_seq) ?? []), id]);
    }
    const cancelling = own.filter((row) => row.concurrency === "cancel" && busy.has(row.seq));
    if (cancelling.length === 0) continue;
    const ours = new Set((await read(tx, tenant, cancelling, true)).map(({ id }) => id));
    for (const { seq } of cancelling) {
      const open = busy.get(seq) ?? [];
      if (open.some((id) => !ours.has(id))) putOff.add(seq);
    }
  }
  return { busy, putOff };
}

async function read(
  tx: Tx,
  tenant: string,
  rows: readonly ScheduleRow[],
  locking: boolean,
): Promise<{ kind_seq: number; id: string }[]> {
  const seqs = rows.map((row) => row.seq);
  return tx.all(sql`select line.kind_seq, job.id from daybook_line line cross join daybook_job job
    where line.kind = ${scheduleKind} and line.kind_seq ${anyOf("integer", seqs)} and line.kind is not null
      and job.seq = line.seq and job.tenant_id = ${tenant} order by line.seq ${locking ? skipLockedOf("line") : sql``}`);
}
