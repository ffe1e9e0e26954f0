// Which finished jobs may leave: what the caller asked for, checked, and fixed to one moment for the whole of a prune.
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { removalTime } from "../../core/steady-time.ts";
import { nearest, refuseUnknown } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { jobNow } from "../job.ts";

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
  readonly lane: number | null;
  /** What the first job of a chain must be besides: `and …`. */
  readonly heads: Sql;
  /** What the last job of a chain must be to let the chain go; null when none can be: there are fewer than are to be kept. */
  readonly last: Sql | null;
  /** Whether it is about age, for whatever has ended. */
  readonly byAge: boolean;
  /** What was asked for, as `pruning` keeps it. */
  readonly filter: string;
};

const finished: readonly FinishedStatus[] = ["completed", "failed", "cancelled", "skipped"];
const open: readonly string[] = ["waiting", "queued", "running"];
const known = ["olderThan", "keep", "queue", "name", "status", "dryRun", "firesOfApps"] as const;

/** Undefined when nothing can fit: a queue that never was. */
export async function toRule(store: Store, tenant: string, options: PruneOptions): Promise<Rule | undefined> {
  refuseUnknown(options, known, "prune");
  const { olderThan, keep, queue, name, status, dryRun, firesOfApps = false } = options;
  if (olderThan === undefined && keep === undefined) {
    throw invalid('prune needs "olderThan", "keep" or both: jobs.prune({ olderThan: "30d", keep: 1000 })');
  }
  if (dryRun !== undefined && typeof dryRun !== "boolean") throw invalid(`dryRun is ${quote(dryRun)}: true or false`);
  const now = olderThan === undefined ? store.clock.now() : removalTime(store.time, options);
  const endedBy = olderThan === undefined ? Number.MAX_SAFE_INTEGER : now - durationMs(olderThan, "olderThan");
  const statuses = checkStatuses(status ?? finished);
  if (name !== undefined) checkName(name, "job name");
  if (keep !== undefined) checkCount(keep, "keep", 0, Number.MAX_SAFE_INTEGER);
  const lane = queue === undefined ? null : await findLane(store, tenant, checkName(queue, "queue"));
  if (lane === undefined) return undefined;
  const asked = sql`job.finished_at is not null and job.status ${anyOf("text", statuses)}
    ${lane === null ? sql`` : sql`and job.lane_seq = ${lane}`} ${name === undefined ? sql`` : sql`and job.name = ${name}`}`;
  const newest = keep === undefined ? sql`` : await findNewest(store, tenant, asked, keep);
  const old = sql`job.finished_at <= ${endedBy} and job.seq is distinct from ${await findLastInUse(store)}`;
  return {
    ...{ tenant, now, endedBy, lane },
    heads: firesOfApps ? sql`and job.kind = 'schedule' and job.app is not null` : sql``,
    last: newest === null ? null : sql`${asked} and ${old} ${newest}`,
    byAge:
      olderThan !== undefined &&
      name === undefined &&
      !firesOfApps &&
      finished.every((each) => statuses.includes(each)),
    filter: toJson({ olderThan, keep, queue, name, status }, { what: "prune" }),
  };
}

// On SQLite the next job's number, and with it its place in line, follows from the highest there is. Were that one removed,
// the next would stand before an open job that was moved to the end. PostgreSQL never gives a number twice.
async function findLastInUse(store: Store): Promise<number | null> {
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

// The last jobs of chains, in the order in which they ended; null when there are no more than are kept. All of the tenant's
// are read for it, but off the event loop, and an index would be paid for by every job that ends.
async function findNewest(store: Store, tenant: string, asked: Sql, keep: number): Promise<Sql | null> {
  const [first] = await store.readLong<{ finished_at: number; seq: number }>(sql`select job.finished_at, job.seq
    from ${jobNow} where job.tenant_id = ${tenant} and ${asked}
      and not exists (select 1 from daybook_job child where child.retry_of = job.seq)
    order by job.finished_at desc, job.seq desc limit 1 offset ${keep}`);
  return first === undefined ? null : sql`and (job.finished_at, job.seq) <= (${first.finished_at}, ${first.seq})`;
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
