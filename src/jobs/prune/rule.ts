// Which finished jobs may leave: what the caller asked for, checked, and fixed to one moment for the whole of a prune.
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { nearest, refuseUnknown } from "../../core/suggest.ts";
import { joinSql, sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { jobNow, type JobRow, type JobStatus } from "../job.ts";

export type FinishedStatus = "completed" | "failed" | "cancelled" | "skipped";

export type PruneOptions = {
  /** Only what ended at least this long ago. */
  readonly olderThan?: Duration;
  /** Not the so many that ended last, of those that `queue`, `name` and `status` leave. */
  readonly keep?: number;
  readonly queue?: string;
  readonly name?: string;
  /** How a job, or the last of its retries, must have ended; default however it did. */
  readonly status?: FinishedStatus | readonly FinishedStatus[];
  /** Reads only, and says what would be removed. */
  readonly dryRun?: boolean;
  /** @internal Only what the schedules of apps fired: retention of telemetry asks for it. */
  readonly firesOfApps?: boolean;
};

export type Rule = {
  readonly tenant: string;
  /** When the prune began; a key that is held beyond this keeps its job. */
  readonly now: number;
  readonly endedBy: number;
  /** The first that may leave, counted from the one that ended last; null when none is kept for its rank. */
  readonly newest: { readonly finished_at: number; readonly seq: number } | null;
  /** No job can fit: there are fewer than are to be kept. */
  readonly noJobs: boolean;
  /** A job that stays whatever else holds; see `findPinned`. */
  readonly pinned: number | null;
  readonly lane: number | null;
  readonly name: string | null;
  readonly firesOfApps: boolean;
  readonly statuses: readonly JobStatus[];
  /** What was asked for, as `pruning` keeps it. */
  readonly filter: string;
};

const finished: readonly FinishedStatus[] = ["completed", "failed", "cancelled", "skipped"];
const open: readonly string[] = ["waiting", "queued", "running"];
const known = ["olderThan", "keep", "queue", "name", "status", "dryRun", "firesOfApps"] as const;

/** Undefined when nothing can fit: a queue that never was. */
export async function toRule(store: Store, tenant: string, options: PruneOptions): Promise<Rule | undefined> {
  refuseUnknown(options, known, "prune");
  const { olderThan, keep, queue, name, dryRun, ...rest } = options;
  if (olderThan === undefined && keep === undefined) {
    throw invalid('prune needs "olderThan", "keep" or both: jobs.prune({ olderThan: "30d", keep: 1000 })');
  }
  if (dryRun !== undefined && typeof dryRun !== "boolean") throw invalid(`dryRun is ${quote(dryRun)}: true or false`);
  const now = store.clock.now();
  const rule = {
    ...{ tenant, now, newest: null, noJobs: false, lane: null, pinned: await findPinned(store) },
    endedBy: olderThan === undefined ? Number.MAX_SAFE_INTEGER : now - durationMs(olderThan, "olderThan"),
    name: name === undefined ? null : checkName(name, "job name"),
    firesOfApps: rest.firesOfApps === true,
    statuses: checkStatuses(rest.status ?? finished),
    filter: toJson({ olderThan, keep, queue, name, status: rest.status }, { what: "prune" }),
  };
  const most = keep === undefined ? undefined : checkCount(keep, "keep", 0, Number.MAX_SAFE_INTEGER);
  const lane = queue === undefined ? null : await findLane(store, tenant, checkName(queue, "queue"));
  if (lane === undefined) return undefined;
  if (most === undefined) return { ...rule, lane };
  const newest = await findNewest(store, { ...rule, lane }, most);
  return newest === undefined ? { ...rule, lane, noJobs: true } : { ...rule, lane, newest };
}

/** Whether the rule is about age, for whatever has ended. */
export function byAge({ endedBy, name, statuses, firesOfApps }: Rule): boolean {
  if (firesOfApps) return false;
  const anyEnd = finished.every((status) => statuses.includes(status));
  return endedBy !== Number.MAX_SAFE_INTEGER && name === null && anyEnd;
}

/** Whether the last job of a chain lets the chain go. */
export function fits(rule: Rule, last: Pick<JobRow, "seq" | "finished_at" | "lane_seq" | "name" | "status">): boolean {
  const { newest, lane, name } = rule;
  const { finished_at: endedAt, seq } = last;
  if (endedAt === null || endedAt > rule.endedBy) return false;
  if (newest !== null && (endedAt > newest.finished_at || (endedAt === newest.finished_at && seq > newest.seq))) {
    return false;
  }
  if ((lane !== null && last.lane_seq !== lane) || (name !== null && last.name !== name)) return false;
  return rule.statuses.includes(last.status);
}

// On SQLite the next job's number, and with it its place in line, follows from the highest there is. Were that one removed,
// the next would stand before an open job that was moved to the end. PostgreSQL never gives a number twice.
async function findPinned(store: Store): Promise<number | null> {
  if (store.dialect !== "sqlite") return null;
  const [last] = await store.readHeavy<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job
    where exists (select 1 from daybook_line)`);
  return last?.seq ?? null;
}

async function findLane(store: Store, tenant: string, queue: string): Promise<number | undefined> {
  const [lane] = await store.read<{ seq: number }>(
    sql`select seq from daybook_lane lane where tenant_id = ${tenant} and queue = ${queue}`,
  );
  return lane?.seq;
}

// The last jobs of chains, in the order in which they ended. All of the tenant's are read for it, but off the event loop,
// and an index would be paid for by every job that ends.
async function findNewest(store: Store, rule: Rule, keep: number): Promise<Rule["newest"] | undefined> {
  const rows = await store.readLong<NonNullable<Rule["newest"]>>(
    joinSql([
      sql`select job.finished_at, job.seq from ${jobNow} where job.tenant_id = ${rule.tenant} and job.finished_at is not null
        and job.status ${anyOf("text", rule.statuses)}
        and not exists (select 1 from daybook_job child where child.retry_of = job.seq)`,
      ...(rule.lane === null ? [] : [sql`and job.lane_seq = ${rule.lane}`]),
      ...(rule.name === null ? [] : [sql`and job.name = ${rule.name}`]),
      sql`order by job.finished_at desc, job.seq desc limit 1 offset ${keep}`,
    ]),
  );
  return rows[0];
}

function checkStatuses(given: FinishedStatus | readonly FinishedStatus[]): FinishedStatus[] {
  const statuses = [given].flat().map(checkStatus);
  if (statuses.length === 0) throw invalid("status is an empty list, which no job fits: leave it out for all");
  return statuses;
}

function checkStatus(status: FinishedStatus): FinishedStatus {
  if (finished.includes(status)) return status;
  if (open.includes(status)) {
    throw invalid(`status "${status}" is not an end: only ${finished.join(", ")} jobs can be pruned; cancel it first`);
  }
  const meant = typeof status === "string" ? nearest(status, finished) : undefined;
  const hint = meant === undefined ? "." : `: did you mean "${meant}"?`;
  throw invalid(`status ${quote(status)} is not known${hint} Give ${finished.join(", ")}`);
}
