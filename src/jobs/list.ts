// Reading jobs: lists with filters and a cursor, one job with its chain and its run.
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { jsonHas } from "../storage/word.ts";
import type { JobStatus } from "./job.ts";
import { selectRecords, toRecord, type JobRecord, type RecordRow } from "./job-record.ts";

export type JobFilter = {
  readonly status?: JobStatus | readonly JobStatus[];
  readonly queue?: string;
  readonly name?: string;
  readonly key?: string;
  readonly tag?: string;
  /** False: only those that nobody tried again, so that `failed` means for good. True: only those that were. */
  readonly retried?: boolean;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
};

export type { JobRecord, JobRun } from "./job-record.ts";

export type JobPage = { readonly items: readonly JobRecord[]; readonly next: string | null };

const statuses: readonly JobStatus[] = [
  ...(["waiting", "queued", "running", "completed", "failed", "cancelled", "skipped"] as const),
];

const filters: readonly (keyof JobFilter)[] = ["status", "queue", "name", "key", "tag", "retried", "limit", "after"];

export async function listJobs(store: Store, tenant: string, filter: JobFilter): Promise<JobPage> {
  refuseUnknown(filter, filters, "the list of jobs");
  const limit = filter.limit ?? limits.pageDefault;
  if (!Number.isInteger(limit) || limit < 1 || limit > limits.pageMax) {
    throw invalid(`limit ${limit} is not a whole number from 1 to ${limits.pageMax}`);
  }
  const before = filter.after === undefined ? Number.MAX_SAFE_INTEGER : Number(filter.after);
  if (!Number.isSafeInteger(before)) throw invalid(`${filter.after} is not a cursor: give "next" of the page before`);
  const rows = await store.readHeavy<RecordRow>(sql`${selectRecords}
    where job.tenant_id = ${tenant} and job.seq < ${before} ${conditions(filter)}
    order by job.seq desc limit ${limit + 1}`);
  const items = rows.slice(0, limit);
  return { items: items.map(toRecord), next: rows.length > limit ? String(items.at(-1)?.seq) : null };
}

function conditions(filter: JobFilter): Sql {
  const wanted = filter.status === undefined ? [] : [filter.status].flat();
  for (const status of wanted) {
    if (!statuses.includes(status)) throw invalid(`status "${status}" is not known: ${statuses.join(", ")}`);
  }
  // Literals, because a partial index is only used when the planner sees its condition.
  const status = wanted.length === 0 ? "" : `and job.status in (${wanted.map((each) => `'${each}'`).join(", ")})`;
  return joinSql([
    rawSql(status),
    ...(filter.queue === undefined ? [] : [sql` and lane.queue = ${filter.queue}`]),
    ...(filter.name === undefined ? [] : [sql` and job.name = ${filter.name}`]),
    ...(filter.key === undefined ? [] : [sql` and job.key = ${filter.key}`]),
    ...(filter.tag === undefined ? [] : [sql` and ${jsonHas("job.tags", filter.tag)}`]),
    ...(filter.retried === undefined ? [] : [rawSql(` and child.seq is ${filter.retried ? "not null" : "null"}`)]),
  ]);
}

export async function findJob(store: Store, tenant: string, id: string): Promise<JobRecord> {
  const [row] = await store.read<RecordRow>(sql`${selectRecords} where job.tenant_id = ${tenant} and job.id = ${id}`);
  if (row === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  return toRecord(row);
}

/** The whole chain of retries that a job belongs to, the first one first. */
export async function readChain(store: Store, tenant: string, id: string): Promise<JobRecord[]> {
  let first = await findJob(store, tenant, id);
  while (first.retryOf !== null) first = await findJob(store, tenant, first.retryOf);
  const chain = [first];
  for (let next = first.retriedBy; next !== null; next = chain.at(-1)?.retriedBy ?? null) {
    chain.push(await findJob(store, tenant, next));
  }
  return chain;
}
