// What must hold of reservations and direct work; doctor asks. That a queue has one reservation at most is the index's.
import { limits } from "../../core/limits.ts";
import type { Check } from "../../storage/check.ts";
import { sql } from "../../storage/sql.ts";

const report = "report it: a claim reads the reservation of a queue under the lock under which it is made";

// The time of a transaction is read before its locks, so one that began a little earlier may have committed later. Hosts
// need not agree on the time at all: only what one of them wrote is compared.
const wroteLaterMs = 2 * limits.busyMsMax;

export const directChecks: readonly Check[] = [
  {
    promise: "J10",
    name: "nothing of a queue was started while the queue was reserved",
    find: () => sql`select job.id as finding from daybook_reservation reservation
      join daybook_session holder on holder.seq = reservation.session_seq
      join daybook_line line on line.lane_seq = reservation.lane_seq join daybook_job job on job.seq = line.seq
      join daybook_session runner on runner.seq = line.session_seq
      where reservation.status = 'active' and line.status = 'running' and job.origin <> 'direct'
        and runner.host = holder.host
        and line.started_at > reservation.reserved_at + ${wroteLaterMs} and line.started_at < reservation.expires_at`,
    advice: report,
  },
  {
    promise: "J10",
    name: "nothing else of a queue runs beside direct work that holds it",
    find: () => sql`select job.id as finding from daybook_reservation reservation
      join daybook_line direct on direct.lane_seq = reservation.lane_seq and direct.session_seq = reservation.session_seq
      join daybook_line line on line.lane_seq = reservation.lane_seq and line.seq <> direct.seq
      join daybook_job job on job.seq = line.seq
      where reservation.status = 'active' and direct.status = 'running' and direct.kind = 'direct'
        and direct.started_at >= reservation.reserved_at
        and line.status = 'running' and line.started_at < reservation.expires_at`,
    advice: report,
  },
  {
    promise: "J15",
    name: "a job that waits for its reservation has one that is held",
    find: () => sql`select job.id as finding from daybook_line line join daybook_job job on job.seq = line.seq
      left join daybook_reservation reservation
        on reservation.tenant_id = job.tenant_id and reservation.id = line.waits_key and reservation.status = 'active'
          and reservation.lane_seq = line.lane_seq
      where line.status = 'waiting' and line.waits_for = 'reservation' and (reservation.seq is null
        or job.origin <> 'direct')`,
    advice: report,
  },
];
