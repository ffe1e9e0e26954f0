// Reading jobs: lists with filters and a cursor, one job with its chain and its run.
import { goneSessions } from "../telemetry/gone-sessions.ts";
import { checkCount } from "../core/count.ts";
import type { Duration } from "../core/duration.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { nearest, refuseUnknown } from "../core/suggest.ts";
import { isoTime, type TimeInput } from "../core/time.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { byNumber, indexedBy, jsonHas, jsonText } from "../storage/word.ts";
import { momentMs } from "../telemetry/report/window.ts";
import type { JobStatus } from "./job.ts";
import { selectOpenRecords, selectRecords, toRecord, type JobRecord, type RecordRow } from "./job-record.ts";
import { findTemplate } from "./template/template.ts";

/** Whose work a job is: `job` for one that was enqueued, else what made it. */
export type ListedKind = "job" | "schedule" | "direct" | "delivery" | "catch_up" | "call";

export type JobFilter = {
  readonly status?: JobStatus | readonly JobStatus[];
  readonly queue?: string;
  readonly name?: string;
  readonly key?: string;
  readonly tag?: string;
  /** Only the jobs of the group of this id, retries included. */
  readonly group?: string;
  /** Only what the schedule of this name has fired. */
  readonly schedule?: string;
  /** Only what was made from the template of this name. */
  readonly template?: string;
  /** Default `["job", "schedule", "direct"]`, or every kind when `name` says which jobs are meant. Deliveries of events, catch-ups
   *  of listeners and calls are many, and have lists of their own. */
  readonly kind?: ListedKind | "all" | readonly (ListedKind | "all")[];
  /** Made from then on, or in this last while: `"24h"`. */
  readonly since?: TimeInput | Duration;
  /** Made before then. */
  readonly until?: TimeInput | Duration;
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

const kinds: readonly ListedKind[] = ["job", "schedule", "direct", "delivery", "catch_up", "call"];
const usualKinds: readonly ListedKind[] = ["job", "schedule", "direct"];

const filters: readonly (keyof JobFilter)[] = [
  ...(["status", "queue", "name", "key", "tag", "group", "schedule", "template", "kind"] as const),
  ...(["since", "until", "retried", "limit", "after"] as const),
];

export async function listJobs(store: Store, tenant: string, filter: JobFilter): Promise<JobPage> {
  refuseUnknown(filter, filters, "the list of jobs");
  const limit = checkCount(filter.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const before = filter.after === undefined ? Number.MAX_SAFE_INTEGER : Number(filter.after);
  if (!Number.isSafeInteger(before)) throw invalid(`${filter.after} is not a cursor: give "next" of the page before`);
  const wanted = joinSql([
    ...[ofStatus(filter.status), ofKind(filter), ofTime(store.clock.now(), filter), ofWords(filter)],
    await ofTemplate(store, tenant, filter.template),
  ]);
  const group = filter.group === undefined ? null : await groupSeq(store, tenant, filter.group);
  const rows = await store.readHeavy<RecordRow>(sql`${found(filter, group, before)}
    and job.tenant_id = ${tenant} ${wanted} ${newestFirst(filter)} limit ${limit + 1}`);
  const items = rows.slice(0, limit);
  return { items: await toRecords(store, items), next: rows.length > limit ? String(items.at(-1)?.seq) : null };
}

// A page is read from its newest job backwards and ends when it is full. Those of a group and those that run are few, and
// are sorted; what is open is found in the line, so that what has ended is not read.
function found(filter: JobFilter, group: number | null, before: number): Sql {
  if (!isOpenOnly(filter)) {
    return group === null
      ? sql`${selectRecords(sql`${byNumber}`)} and job.seq < ${before}`
      : sql`${selectRecords(sql`${indexedBy("jobs_of_group")}`)} and job.group_seq = ${group} and job.seq < ${before}`;
  }
  const ofGroup = group === null ? sql`` : sql`and line.group_seq = ${group}`;
  const running = [filter.status].flat().every((each) => each === "running");
  const by = running ? indexedBy("jobs_running") : group === null ? byNumber : indexedBy("jobs_open_in_group");
  return sql`${selectOpenRecords(sql`${by}`)} and line.seq < ${before} ${ofGroup}`;
}

// SQLite does not see that the two numbers are one, and would sort.
function newestFirst(filter: JobFilter): Sql {
  return isOpenOnly(filter) ? sql`order by line.seq desc` : sql`order by job.seq desc`;
}

function isOpenOnly({ status }: JobFilter): boolean {
  const states = status === undefined ? [] : [status].flat();
  return states.length > 0 && states.every((each) => isOpen.has(each));
}

function ofStatus(given: JobFilter["status"]): Sql {
  const wanted = given === undefined ? [] : [given].flat();
  for (const status of wanted) {
    if (!statuses.includes(status)) throw invalid(`status "${status}" is not known: ${statuses.join(", ")}`);
  }
  if (wanted.length === 0) return sql``;
  const open = wanted.filter((status) => isOpen.has(status));
  const inLine = [...new Set(open)].map((each) => `line.status = '${each}'`);
  if (open.length === wanted.length) return rawSql(`and (${inLine.join(" or ")})`);
  return rawSql(`and (${[...inLine, `(line.seq is null and ${ended(wanted)})`].join(" or ")})`);
}

function ofKind({ kind: given, name, schedule }: JobFilter): Sql {
  const asked = given === undefined ? (name === undefined ? usualKinds : kinds) : [given].flat();
  const wanted = asked.flatMap((each) => (each === "all" ? kinds : each));
  for (const kind of wanted) {
    if (kinds.includes(kind)) continue;
    const near = nearest(String(kind), kinds);
    const hint = near === undefined ? "." : `: did you mean "${near}"?`;
    throw invalid(`kind ${quote(kind)} is not known${hint} There are ${kinds.join(", ")}, and all`);
  }
  if (wanted.length === 0) throw invalid(`kind is an empty list: give some of ${kinds.join(", ")}, or "all"`);
  const made = wanted.filter((kind) => kind !== "job").map((kind) => `'${kind}'`);
  const either = [
    ...(wanted.includes("job") ? ["job.kind is null"] : []),
    ...(made.length === 0 ? [] : [`job.kind in (${made.join(", ")})`]),
  ];
  const ofKinds = kinds.every((kind) => wanted.includes(kind)) ? sql`` : rawSql(`and (${either.join(" or ")})`);
  if (schedule === undefined) return ofKinds;
  // The registration of an app's job is its name within the app; what it was told of its slot has the schedule's own.
  const named = jsonText("job.about", ["schedule", "name"]);
  return sql`${ofKinds} and job.kind = 'schedule' and ${named} = ${checkName(schedule, "schedule")}`;
}

function ofTime(now: number, { since, until }: JobFilter): Sql {
  const from = since === undefined ? null : momentMs(now, since, "since");
  const to = until === undefined ? null : momentMs(now, until, "until");
  if (from !== null && to !== null && from >= to) {
    throw invalid(`since ${isoTime(from)} is not before until ${isoTime(to)}`);
  }
  return joinSql([
    ...(from === null ? [] : [sql` and job.created_at >= ${from}`]),
    ...(to === null ? [] : [sql` and job.created_at < ${to}`]),
  ]);
}

function ofWords({ queue, name, key, tag, retried }: JobFilter): Sql {
  return joinSql([
    ...(queue === undefined ? [] : [sql` and lane.queue = ${queue}`]),
    ...(name === undefined ? [] : [sql` and job.name = ${name}`]),
    ...(key === undefined ? [] : [sql` and job.key = ${key}`]),
    ...(tag === undefined ? [] : [sql` and ${jsonHas("job.tags", tag)}`]),
    ...(retried === undefined ? [] : [rawSql(` and child.seq is ${retried ? "not null" : "null"}`)]),
  ]);
}

async function ofTemplate(store: Store, tenant: string, name: string | undefined): Promise<Sql> {
  if (name === undefined) return sql``;
  const { id } = await findTemplate((statement) => store.read(statement), tenant, checkName(name, "template"));
  return sql` and job.template_id = ${id}`;
}

async function groupSeq(store: Store, tenant: string, id: string): Promise<number> {
  if (typeof id !== "string") throw invalid(`group ${quote(id)} is not the id of a group`);
  const [row] = await store.read<{ seq: number }>(
    sql`select seq from daybook_job_group where tenant_id = ${tenant} and id = ${id}`,
  );
  if (row === undefined) throw new DaybookError("not_found", `there is no group ${quote(id)}`, { details: { id } });
  return row.seq;
}

const isOpen: ReadonlySet<JobStatus> = new Set(["waiting", "queued", "running"]);

function ended(wanted: readonly JobStatus[]): string {
  const conditions: Partial<Record<JobStatus, string>> = {
    completed: "run.status = 'success'",
    skipped: "run.status = 'skipped'",
    cancelled: "(run.status = 'cancelled' or (run.seq is null and job.cancelled_at is not null))",
    failed: "run.status in ('error', 'timed_out', 'lost')",
  };
  return `(${wanted.flatMap((status) => conditions[status] ?? []).join(" or ")})`;
}

export async function findJob(store: Store, tenant: string, id: string): Promise<JobRecord> {
  const [row] = await store.read<RecordRow>(
    sql`${selectRecords(sql``)} and job.tenant_id = ${tenant} and job.id = ${id}`,
  );
  if (row === undefined) throw new DaybookError("not_found", `there is no job ${id}`, { details: { id } });
  const [record] = await toRecords(store, [row]);
  return record as JobRecord;
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

// Only what runs asks for the sessions that are gone.
async function toRecords(store: Store, rows: readonly RecordRow[]): Promise<JobRecord[]> {
  const runs = rows.some((row) => row.sessionId !== null);
  const gone = new Set(runs ? (await goneSessions(store)).map(({ id }) => id) : []);
  return rows.map((row) => toRecord(row, gone));
}
