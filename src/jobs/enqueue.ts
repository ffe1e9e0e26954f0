// Enqueue: one row, in whatever transaction the caller is in. When that commits, the job exists and workers hear of
// it; when it is undone, there never was one.
import { conflict } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { sql, rawSql, type Value } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { inSlices } from "../storage/slices.ts";
import { together } from "../storage/unit.ts";
import { heardBy } from "../core/cause.ts";
import { waitsKey } from "./wait/park.ts";
import { jobsChannel, queuedChannel, allHave, someHave, type JobRow, type JobStatus, type Beginning } from "./job.ts";
import { laneOf, lanesOf } from "./claim/lane.ts";
import type { Prepared } from "./define.ts";
import { tie } from "./state.ts";
import { anyOf, rowsInto, unnested, type ColumnType } from "../storage/word.ts";
import { resolveConflict, takeKey } from "./key.ts";

/** `Result` is what the job's handler returns. */
export type Enqueued<Result = unknown> = {
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  /** False when the key or the idempotency key already had a job, which this then is. */
  readonly created: boolean;
  /** Set when the job was made by a name that nobody has hosted yet, or that has a limit which could not be counted. */
  readonly warning?: string;
  /** For the compiler alone; there is nothing here when the program runs. */
  readonly "~result"?: Result;
};

export function withWarning(made: Enqueued, { warning }: Partial<Pick<Prepared, "warning">>): Enqueued {
  return warning === undefined ? made : { ...made, warning };
}

function answer({ id, name, status }: Pick<JobRow, "id" | "name" | "status">, created: boolean): Enqueued {
  return { id, name, status, created };
}

export async function enqueue(tx: Tx, prepared: Prepared): Promise<Enqueued> {
  const lane = laneOf(tx, tx.tenant, prepared.queue);
  const row = newJob(tx, typeof lane === "number" ? lane : await lane, prepared);
  const made = await insertOne(tx, row, prepared);
  wakeFor(tx, [made]);
  return withWarning(made, prepared);
}

type Wanted = { readonly tenant: string; readonly prepared: Prepared };

/** Jobs of any tenants. Those without keys are one statement; one with a key (of the transaction's tenant) is decided in its turn. */
export async function enqueueAll(tx: Tx, all: readonly Wanted[]): Promise<Enqueued[]> {
  const lanes = new Map<string, Map<string, number>>();
  for (const [tenant, some] of Map.groupBy(all, (each) => each.tenant)) {
    const queues = some.map(({ prepared }) => prepared.queue);
    lanes.set(tenant, await lanesOf(tx, tenant, queues));
  }
  const done: Enqueued[] = [];
  const free: NewJob[] = [];
  for (const { tenant, prepared } of all) {
    const row = newJob(tx, lanes.get(tenant)?.get(prepared.queue) ?? 0, prepared, tenant);
    if (isFree(prepared)) {
      free.push(row);
      done.push(withWarning(answer(row, true), prepared));
      continue;
    }
    await insertFree(tx, free.splice(0));
    done.push(withWarning(await insertOne(tx, row, prepared), prepared));
  }
  await insertFree(tx, free);
  wakeFor(tx, done);
  return done;
}

async function insertFree(tx: Tx, rows: readonly NewJob[]): Promise<void> {
  await inSlices(
    rows,
    (slice) => insertJobs(tx, slice),
    ({ params }) => params.length,
  );
}

/** Nothing that exists already can stand in its way. */
export function isFree({ key, idempotency_key }: Prepared): boolean {
  return key === null && idempotency_key === null;
}

function wakeFor(tx: Tx, made: readonly Enqueued[]): void {
  tx.wake(made.every((each) => each.created && each.status === "queued") ? queuedChannel : jobsChannel);
}

const conflictTriesMax = 10;

// On PostgreSQL the holder of the key may start or end between two of our statements: the decision is made until it holds.
async function insertOne(tx: Tx, row: NewJob, prepared: Prepared): Promise<Enqueued> {
  for (let tries = 0; tries < conflictTriesMax; tries++) {
    if ((await insertJobs(tx, [row])) === 1) return answer(row, true);
    const decided = await resolveConflict(tx, prepared, row);
    if (decided !== undefined) return answer(decided, false);
  }
  throw conflict(`key ${quote(row.key)} of ${row.name} changes hands too fast: try again`, {});
}

export function newJob(tx: Tx, lane: number, prepared: Prepared, tenant = tx.tenant): NewJob {
  const { cause, keyWindowMs } = prepared;
  const availableAt = Math.max(tx.now, prepared.at ?? tx.now + prepared.delayMs);
  const waits = availableAt > tx.now;
  const heard = heardBy(cause);
  return {
    ...prepared,
    tenant_id: tenant,
    id: tx.ids(),
    lane_seq: lane,
    status: waits ? "waiting" : "queued",
    waits_for: waits ? "time" : null,
    waits_key: null,
    created_at: tx.now,
    available_at: availableAt,
    delay_ms: waits && prepared.at === null ? prepared.delayMs : null,
    key_until: keyWindowMs === null ? null : tx.now + keyWindowMs,
    cause_run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
    traceparent: prepared.traceparent ?? null,
    about: heard === undefined ? null : JSON.stringify({ heard }),
  };
}

/** On the book, jobs without keys that are enqueued at the same time are one statement. */
export type EnqueueTogether = ReturnType<typeof enqueueTogether>;

const unitJobsMax = 500;

export function enqueueTogether(store: Store) {
  const enqueue = together(enqueueAll, unitJobsMax);
  return (tenant: string, prepared: Prepared): Promise<Enqueued> => enqueue(store, { tenant, prepared });
}

// Writes new jobs: a row of `job`, which never changes, and a row of the line. This is the hottest insert of the book, so most
// jobs name only the columns that they use, and many jobs are one statement each for job and line.

/** What a new job says; what it leaves out has its column's default, and its place in line follows from its number. */
export type NewJob = Beginning &
  Partial<JobRow> & {
    /** False: it has a key and does not take it. */
    readonly holdsKey?: boolean;
    /** Until when its key is taken, if that is a window of time. */
    readonly key_until?: number | null;
    /** How long it waits from now on, when that was asked for and not a moment. */
    readonly delay_ms?: number | null;
  };

type Columns = Readonly<Record<string, ColumnType>>;

const moreJobColumns = {
  ...someHave,
  key_scope: "text",
  due_at: "integer",
  delay_ms: "integer",
  origin: "text",
  attempt: "integer",
  losses: "integer",
  alone: "integer",
} as const satisfies Columns;

const defaults = { origin: "enqueued", attempt: 1, losses: 0, alone: 0, awaited: 0 };

const lineColumns = {
  seq: "integer",
  lane_seq: "integer",
  status: "text",
  waits_for: "text",
  waits_key: "text",
  priority: "integer",
  position: "integer",
  available_at: "integer",
  ties: "integer",
} as const satisfies Columns;

const { kind, kind_seq, group_seq, group_slot } = someHave;
const moreLineColumns = { kind, kind_seq, group_seq, group_slot, order_key: "text", awaited: "integer" } as const;

const usual = shapeOf(allHave, lineColumns);
const everything = shapeOf({ ...allHave, ...moreJobColumns }, { ...lineColumns, ...moreLineColumns });

type Shape = ReturnType<typeof shapeOf>;

function shapeOf(job: Columns, line: Columns) {
  const { seq: _numbered, ...columns } = { ...job, ...line };
  return { columns, job: insertOf("daybook_job", job), line: insertOf("daybook_line", line) };
}

function insertOf(table: string, columns: Columns) {
  const names = Object.keys(columns);
  const into = `insert into ${table} (${names.join(", ")})`;
  const values = `values (${names.map(() => "?").join(", ")}) on conflict do nothing`;
  const cells = names.map((name) => (name === "position" ? "coalesce(v.position, v.seq * 100)" : `v.${name}`));
  return {
    names,
    each: `${into} ${values}`,
    fromRows: rawSql(`${into} select ${cells.join(", ")} from v`),
  };
}

/** Inserts the jobs that no unique key forbids, in order, and says how many that were. */
export async function insertJobs(tx: Tx, rows: readonly NewJob[]): Promise<number> {
  if (rows.length === 0) return 0;
  const shape = rows.every(isUsual) ? usual : everything;
  const filled = rows.map((row) => fill(row, shape));
  let inserted = await (tx.dialect === "sqlite" ? insertOnSqlite : insertOnPostgres)(tx, shape, filled);
  for (const [index, row] of rows.entries()) {
    const seq = filled[index]?.["seq"] as number | null;
    if (row.key != null && row.holdsKey !== false && seq !== null && !(await takeKey(tx, row, seq))) inserted--;
  }
  return inserted;
}

const optional = Object.keys({ ...moreJobColumns, ...defaults }) as (keyof NewJob)[];

function isUsual(row: NewJob): boolean {
  if (row.available_at > row.created_at) return false;
  for (const name of optional) {
    const value = row[name];
    if (value != null && value !== defaults[name as keyof typeof defaults]) return false;
  }
  return true;
}

type Filled = Record<string, Value>;

// The place in line is the job's number × 100 unless the job keeps another's.
function fill(row: NewJob, shape: Shape): Filled {
  const ordered = row.kind != null && row.limit_key != null;
  const ties =
    (row.key == null ? 0 : tie.key) |
    (row.limits == null ? 0 : tie.limit) |
    (ordered ? tie.order : 0) |
    (row.group_seq == null ? 0 : tie.group);
  const position = row.position ?? null;
  if (shape === usual) return { ...row, ties, position, seq: null };
  const { tenant_id: tenant, limit_key } = row;
  const order_key = ordered ? waitsKey({ tenant, waitsFor: "order", key: limit_key ?? "" }) : null;
  const due_at = row.available_at > row.created_at ? row.available_at : null;
  return { ...defaults, ...row, ties, position, order_key, due_at, seq: null };
}

// SQLite's only writer knows the next numbers.
async function insertOnSqlite(tx: Tx, { job, line }: Shape, rows: readonly Filled[]): Promise<number> {
  const last = await tx.get<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job`);
  let next = last?.seq ?? 0;
  for (const row of rows) {
    const seq = ++next;
    row["seq"] = seq;
    row["position"] ??= seq * 100;
  }
  const inserted = await tx.run(rowsInto(job.each, job.names, rows));
  const there = inserted === rows.length ? rows : await whichAreThere(tx, rows);
  if (there.length > 0) await tx.run(rowsInto(line.each, line.names, there));
  return inserted;
}

async function whichAreThere(tx: Tx, rows: readonly Filled[]): Promise<Filled[]> {
  const seqs = rows.map((row) => row["seq"] as number);
  const found = await tx.all<{ seq: number }>(sql`select seq from daybook_job where seq ${anyOf("integer", seqs)}`);
  const there = new Set(found.map((row) => row.seq));
  for (const row of rows) if (!there.has(row["seq"] as number)) row["seq"] = null;
  return rows.filter((row) => row["seq"] !== null);
}

// One statement for job and line, whatever the number of rows: PostgreSQL numbers them on the way. Jobs of the usual shape have
// nothing that could be taken already, so the statement does not say which of them were inserted.
async function insertOnPostgres(tx: Tx, shape: Shape, rows: readonly Filled[]): Promise<number> {
  const { columns, job, line } = shape;
  const numbered = sql`with v as materialized (
    select nextval('daybook_job_seq_seq') as seq, u.* from ${unnested("u", columns, rows)} order by u.ordinality)`;
  if (shape === usual) return tx.run(sql`${numbered}, j as (${job.fromRows}) ${line.fromRows}`);
  const made = await tx.all<{ seq: number; id: string }>(sql`${numbered},
    j as (${job.fromRows} on conflict do nothing returning seq, id),
    l as (${line.fromRows} join (select seq from j) as made on made.seq = v.seq) select seq, id from j`);
  const seqOf = new Map(made.map((row) => [row.id, row.seq]));
  for (const row of rows) row["seq"] = seqOf.get(row["id"] as string) ?? null;
  return made.length;
}
