// What became of events: the last job of each chain of deliveries, in the words that people use of events.
import { sql } from "../storage/sql.ts";
import { anyOf } from "../storage/word.ts";
import type { Store } from "../storage/store.ts";
import { jobNow, type JobStatus } from "../jobs/job.ts";
import type { DeadLetterStatus } from "./dead-letter.ts";
import { deliveryName } from "./listener.ts";

/** `acked`, `skipped` and `discarded` are ends. */
export type DeliveryStatus = "pending" | "claimed" | "acked" | "dead_lettered" | "skipped" | "discarded";
export type EventStatus = "dead_lettered" | "acked" | "claimed" | "pending";

export type DeliveryRecord = {
  readonly listener: string;
  readonly status: DeliveryStatus;
  /** The last job of its chain. */
  readonly jobId: string;
  readonly attempts: number;
  /** Why it waits, if it does. */
  readonly waitsFor: string | null;
  readonly availableAt: number;
  readonly endedAt: number | null;
  /** The last failure. */
  readonly error: { readonly type: string; readonly message: string } | null;
  readonly deadLetterId: string | null;
};

type Row = {
  event_seq: number;
  name: string;
  id: string;
  status: JobStatus;
  attempt: number;
  waits_for: string | null;
  available_at: number;
  finished_at: number | null;
  error_type: string | null;
  error_message: string | null;
  letter_id: string | null;
  letter_status: DeadLetterStatus | null;
};

/** The deliveries of events, by their numbers, in the order of the listeners' names. */
export async function readDeliveries(
  store: Store,
  tenant: string,
  events: readonly number[],
): Promise<Map<number, DeliveryRecord[]>> {
  if (events.length === 0) return new Map();
  const prefix = deliveryName("").length + 1;
  const rows = await store.readHeavy<Row>(sql`
    with recursive chain (seq) as (
      select seq from daybook_job job where tenant_id = ${tenant} and kind = 'delivery' and retry_of is null
        and kind_seq ${anyOf("integer", events)}
      union all select job.seq from chain cross join daybook_job job where job.retry_of = chain.seq)
    select job.kind_seq as event_seq, job.name, job.id, job.status, job.attempt, job.waits_for, job.available_at,
      job.finished_at, coalesce(run.error_type, before.error_type) as error_type,
      coalesce(run.error_message, before.error_message) as error_message,
      letter.id as letter_id, letter.status as letter_status
    from chain cross join ${jobNow}
    left join daybook_run run on run.job_seq = job.seq
    left join daybook_job parent on parent.seq = job.retry_of
    left join daybook_run before on before.job_seq = parent.seq and run.id is null
    left join daybook_listener listener on listener.tenant_id = job.tenant_id and listener.name = substr(job.name, ${prefix})
    left join daybook_dead_letter letter on letter.tenant_id = job.tenant_id and letter.event_seq = job.kind_seq
      and letter.listener_seq = listener.seq
    where job.seq = chain.seq and not exists (select 1 from daybook_job child where child.retry_of = job.seq)
    order by job.kind_seq, job.name`);
  return Map.groupBy(rows, (row) => row.event_seq)
    .entries()
    .reduce((found, [seq, own]) => found.set(seq, own.map(toRecord)), new Map<number, DeliveryRecord[]>());
}

function toRecord(row: Row): DeliveryRecord {
  return {
    listener: row.name.slice(deliveryName("").length),
    status: statusOf(row),
    jobId: row.id,
    attempts: row.attempt,
    waitsFor: row.waits_for,
    availableAt: row.available_at,
    endedAt: row.finished_at,
    error: row.error_type === null ? null : { type: row.error_type, message: row.error_message ?? "" },
    deadLetterId: row.letter_id,
  };
}

function statusOf({ status, letter_status: letter }: Row): DeliveryStatus {
  switch (status) {
    case "completed":
      return "acked";
    case "running":
      return "claimed";
    case "waiting":
    case "queued":
      return "pending";
    default:
      if (letter === "dead" || letter === "redriving") return "dead_lettered";
      return letter === "discarded" ? "discarded" : "skipped";
  }
}

const ends: ReadonlySet<DeliveryStatus> = new Set(["acked", "skipped", "discarded"]);

/** One word for an event: dead_lettered before acked (all have ended) before claimed before pending. `made` is how many
 *  deliveries there were; those that retention has taken had ended. */
export function overallStatus(made: number, deliveries: readonly Pick<DeliveryRecord, "status">[]): EventStatus {
  if (deliveries.some(({ status }) => status === "dead_lettered")) return "dead_lettered";
  if (made + deliveries.length > 0 && deliveries.every(({ status }) => ends.has(status))) return "acked";
  return deliveries.some(({ status }) => status === "claimed") ? "claimed" : "pending";
}
