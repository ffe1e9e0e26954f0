// Reading jobs: lists with filters and a cursor, one job with its chain and its run.
import type { Duration } from "../../core/duration.ts";
import { invalid, notFound } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { checkWord, refuseUnknownFilter } from "../../core/suggest.ts";
import type { TimeInput } from "../../core/time.ts";
import { shapeEach } from "../../storage/shape.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Awaitable, Row, Store } from "../../storage/store.ts";
import { byNumber, indexedBy, jsonHas, type Part } from "../../storage/word.ts";
import { goneSessions } from "../../telemetry/session.ts";
import { checkPage, cutPage, type Page, type PageOptions } from "../../core/page.ts";
import { momentMs, toWindow } from "../../telemetry/report/scope.ts";
import type { RunStatus } from "../../telemetry/run.ts";
import { commandColumns, type CommandRecord } from "../command/command-record.ts";
import { endedStatuses, openStatuses, statusNow, type JobOrigin, type JobStatus, type WaitsFor } from "../job.ts";
import { shownNotice, type ShownNotice } from "../notice.ts";
import { findTemplate } from "../template/template.ts";

export type JobRecord = {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly status: JobStatus;
  readonly waitsFor: WaitsFor | null;
  readonly priority: number;
  /** Its place in line; null once it has ended. */
  readonly position: number | null;
  readonly createdAt: number;
  readonly availableAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly params: unknown;
  readonly origin: JobOrigin;
  readonly attempt: number;
  readonly attempts: number;
  readonly losses: number;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly template: string | null;
  readonly retryOf: string | null;
  readonly retriedBy: string | null;
  readonly runId: string | null;
  readonly sessionId: string | null;
  /** It is called running, but its process is gone from this host: whoever recovers it makes it again. */
  readonly gone: boolean;
  readonly progress: { readonly done: number; readonly note: string | null } | null;
  readonly cause: { readonly runId: string; readonly rootRunId: string } | null;
  readonly run: JobRun | null;
};

export type JobDetails = JobRecord & {
  /** Which webhook is told of which end, by its template or its definition. */
  readonly notify: ShownNotice | null;
};

export type JobRun = {
  readonly id: string;
  readonly status: RunStatus;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly durationMs: number;
  readonly attempt: number;
  readonly error: { readonly type: string; readonly message: string; readonly trace: string | null } | null;
  readonly result: unknown;
  /** The program that it started; null for every other kind of job. */
  readonly command: CommandRecord | null;
};

const usualKinds = ["job", "schedule", "direct"] as const;
export const listedKinds = [...usualKinds, "delivery", "catch_up", "call"] as const;
/** Whose work a job is: `job` for one that was enqueued, else what made it. */
export type ListedKind = (typeof listedKinds)[number];

export type JobFilter = PageOptions & {
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
};

export type JobPage = Page<JobRecord>;

// Its start is in the line while it is open, then in its run. A loss is charged only to a job that ran alone (settle.ts).
const columns = sql`select job.seq as ".seq", job.id, job.name, lane.queue, ${statusNow} as status, line.waits_for as "waitsFor",
    coalesce(line.priority, job.priority) as priority, line.position, job.created_at as "createdAt",
    coalesce(line.available_at, job.due_at, job.created_at) as "availableAt",
    coalesce(line.started_at, run.started_at) as "startedAt", coalesce(run.ended_at, job.cancelled_at) as "finishedAt",
    job.params as "params json", job.origin, job.attempt, job.attempts,
    job.losses + case when run.status = 'lost' and job.alone = 2 then 1 else 0 end as losses, job.key,
    coalesce(job.tags, '[]') as "tags json", job_template.name as template, parent.id as "retryOf",
    child.id as "retriedBy", coalesce(line.run_id, run.id) as "runId", session.id as "sessionId", 0 as "gone flag",
    line.progress as "progress.done", line.progress_note as "progress.note", job.cause_run_id as "cause.runId",
    job.root_run_id as "cause.rootRunId", run.id as "run.id", run.status as "run.status", run.started_at as "run.startedAt",
    run.ended_at as "run.endedAt", run.duration_ms as "run.durationMs", job.attempt as "run.attempt",
    run.error_type as "run.error.type", coalesce(run.error_message, '') as "run.error.message",
    run.error_trace as "run.error.trace", run.result as "run.result json", ${commandColumns}`;

const columnsOfOne = sql`${columns}, coalesce(job_template.notify,
    (select definition.notify from daybook_definition definition where definition.name = job.name)) as ".notify"`;

const around = sql`left join daybook_run run on run.job_seq = job.seq
  left join daybook_job_template job_template
    on job_template.tenant_id = job.tenant_id and job_template.id = job.template_id
  left join daybook_session session on session.seq = line.session_seq
  left join daybook_job parent on parent.seq = job.retry_of
  left join daybook_job child on child.retry_of = job.seq
  left join daybook_run_command command
    on command.tenant_id = job.tenant_id and command.run_id = coalesce(line.run_id, run.id)`;

// Jobs in any state; `by` is how SQLite finds them. It must not begin with the lane, and sort all jobs of all lanes.
function selectJobs(by: Part | Sql, what = columns): Sql {
  return sql`${what} from daybook_job job ${by} cross join daybook_lane lane
    left join daybook_line line on line.seq = job.seq ${around} where lane.seq = job.lane_seq`;
}

const ended: Partial<Record<JobStatus, string>> = {
  completed: "run.status = 'success'",
  failed: "run.status in ('error', 'timed_out', 'lost')",
  cancelled: "(run.status = 'cancelled' or (run.seq is null and job.cancelled_at is not null))",
  skipped: "run.status = 'skipped'",
};
const statuses: readonly JobStatus[] = [...openStatuses, ...endedStatuses];

type Asked = { readonly store: Store; readonly tenant: string; readonly from: Sql };
type Wanted = Required<Omit<JobFilter, keyof PageOptions>>;
type Conditions = { readonly [Name in keyof Wanted]: (wanted: Wanted[Name], asked: Asked) => Awaitable<Sql> };

const conditions: Conditions = {
  status(given) {
    const either = [...new Set([given].flat())].map((each) => {
      const end = ended[checkWord(each, statuses, "status")];
      return end === undefined ? `line.status = '${each}'` : `(line.seq is null and ${end})`;
    });
    return rawSql(either.length === 0 ? "true" : `(${either.join(" or ")})`);
  },
  kind(given) {
    const asked = [given].flat().map((each) => checkWord(each, [...listedKinds, "all"], "kind"));
    if (asked.length === 0) throw invalid(`kind is an empty list: give some of ${listedKinds.join(", ")}, or "all"`);
    const either = asked.map((each) => (each === "job" ? "job.kind is null" : `job.kind = '${each}'`));
    const all = asked.includes("all") || listedKinds.every((each) => asked.includes(each));
    return rawSql(all ? "true" : `(${either.join(" or ")})`);
  },
  queue: (queue) => sql`lane.queue = ${queue}`,
  name: (name) => sql`job.name = ${name}`,
  key: (key) => sql`job.key = ${key}`,
  tag: (tag) => sql`${jsonHas("job.tags", tag)}`,
  async group(id, { store, tenant, from }) {
    if (typeof id !== "string") throw invalid(`group ${quote(id)} is not the id of a group`);
    const which = sql`select seq from daybook_job_group where tenant_id = ${tenant} and id = ${id}`;
    const [group] = await store.read<{ seq: number }>(which);
    if (group === undefined) throw notFound(`there is no group ${quote(id)}`, { id });
    return sql`${from}.group_seq = ${group.seq}`;
  },
  // By the schedule and not by what the job was told of its slot: a schedule may have been renamed since.
  schedule: (name) =>
    sql`job.kind = 'schedule' and job.kind_seq = (select schedule.seq from daybook_schedule schedule
      where schedule.tenant_id = job.tenant_id and schedule.name = ${checkName(name, "schedule")})`,
  async template(name, { store, tenant }) {
    const { id } = await findTemplate((statement) => store.read(statement), tenant, checkName(name, "template"));
    return sql`job.template_id = ${id}`;
  },
  since: (since, { store }) => sql`job.created_at >= ${momentMs(store.clock.now(), since, "since")}`,
  until: (until, { store }) => sql`job.created_at < ${momentMs(store.clock.now(), until, "until")}`,
  retried: (retried) => rawSql(`child.seq is ${retried ? "not null" : "null"}`),
};
const filters = Object.keys(conditions) as (keyof Conditions)[];

export function checkJobFilter(filter: JobFilter): void {
  refuseUnknownFilter(filter, [...filters, "limit", "after"], "the list of jobs");
}

export async function listJobs(store: Store, tenant: string, filter: JobFilter): Promise<JobPage> {
  checkJobFilter(filter);
  const { limit, after } = checkPage(filter);
  const { select, where, from } = await readWhich(store, tenant, filter);
  const { rows, more } = await store.readPage<Row>(sql`${select(columns)} ${where}
    and ${from}.seq < ${after ?? Number.MAX_SAFE_INTEGER} order by ${from}.seq desc limit ${limit + 1}`);
  const { items, next } = cutPage(rows, limit, (row) => row[".seq"] as number, undefined, more || rows.length > limit);
  return { items: await toRecords(store, items), next };
}

/** How many jobs there are that a filter fits. */
export async function countJobs(store: Store, tenant: string, filter: JobFilter): Promise<number> {
  const { select, where } = await readWhich(store, tenant, filter);
  const [row] = await store.readHeavy<{ n: number }>(sql`${select(sql`select count(*) as n`)} ${where}`, {
    msMax: limits.reportMs,
  });
  return row?.n ?? 0;
}

/** The ids of jobs that a filter fits, the newest first. `after` is the last number of the page before. */
export async function listIds(
  store: Store,
  tenant: string,
  filter: JobFilter,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<{ readonly seq: number; readonly id: string }[]> {
  const { select, where, from } = await readWhich(store, tenant, filter);
  return store.readHeavy(
    sql`${select(sql`select job.seq, job.id`)} ${where} and ${from}.seq < ${after} order by ${from}.seq desc limit ${limit}`,
    { msMax: limits.reportMs },
  );
}

type Which = { select(what: Sql): Sql; readonly where: Sql; readonly from: Sql };

async function readWhich(store: Store, tenant: string, filter: JobFilter): Promise<Which> {
  const { since, until, kind = filter.name === undefined ? usualKinds : "all" } = filter;
  if (since !== undefined && until !== undefined) toWindow(store.clock.now(), { since, until });
  // SQLite does not see that the two numbers are one, and would sort.
  const from = rawSql(isOpenOnly(filter) ? "line" : "job");
  const wanted: Sql[] = [];
  for (const name of filters) {
    const given = { ...filter, kind }[name];
    if (given !== undefined) wanted.push(sql`and ${await conditions[name](given as never, { store, tenant, from })}`);
  }
  const where = sql`and job.tenant_id = ${tenant} ${joinSql(wanted)}`;
  return { select: (what) => selectBy(filter, what), where, from };
}

// A page is read from its newest job backwards and ends when it is full. Those of a group and those that run are few, and
// are sorted; what is open is found in the line, so that what has ended is not read.
function selectBy(filter: JobFilter, what: Sql): Sql {
  const inGroup = filter.group !== undefined;
  if (!isOpenOnly(filter)) return selectJobs(inGroup ? indexedBy("jobs_of_group") : byNumber, what);
  const running = [filter.status].flat().every((each) => each === "running");
  const by = running ? indexedBy("jobs_running") : inGroup ? indexedBy("jobs_open_in_group") : byNumber;
  return sql`${what} from daybook_line line ${by} cross join daybook_job job cross join daybook_lane lane ${around}
    where job.seq = line.seq and lane.seq = job.lane_seq`;
}

function isOpenOnly({ status = [] }: JobFilter): boolean {
  const wanted = [status].flat();
  return wanted.length > 0 && wanted.every((each) => (openStatuses as readonly JobStatus[]).includes(each));
}

export async function findJob(store: Store, tenant: string, id: string): Promise<JobRecord> {
  const [record] = await toRecords(store, await findRows(store, tenant, id, columns));
  if (record === undefined) throw notFound(`there is no job ${id}`, { id });
  return record;
}

function findRows(store: Store, tenant: string, id: string, what: Sql): Promise<Row[]> {
  return store.read<Row>(sql`${selectJobs(sql``, what)} and job.tenant_id = ${tenant} and job.id = ${id}`);
}

export async function readJob(store: Store, tenant: string, id: string): Promise<JobDetails> {
  const rows = await findRows(store, tenant, id, columnsOfOne);
  const [job] = await toRecords(store, rows);
  if (job === undefined) throw notFound(`there is no job ${id}`, { id });
  return { ...job, notify: shownNotice(rows[0]?.[".notify"] ?? null) };
}

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
async function toRecords(store: Store, rows: readonly Row[]): Promise<JobRecord[]> {
  const runs = rows.some(({ sessionId }) => sessionId !== null);
  const gone = new Set<unknown>(runs ? (await goneSessions(store)).map(({ id }) => id) : []);
  const jobs = await shapeEach<JobRecord>(rows);
  return gone.size === 0 ? jobs : jobs.map((job) => ({ ...job, gone: gone.has(job.sessionId) }));
}
