// Writes new jobs: a row of `job`, which never changes, and a row of the line. This is the hottest insert of the book, so most
// jobs name only the columns that they use, and many jobs are one statement each for job and line.
import { sql, rawSql, type Value } from "../storage/sql.ts";
import { anyOf, rowsInto, unnested, type ColumnType } from "../storage/word.ts";
import type { Tx } from "../storage/store.ts";
import { allHave, someHave, type Beginning, type JobRow } from "./job.ts";
import { waitsKey } from "./wait/park.ts";
import { tie } from "./state.ts";

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
// nothing that could be taken already, so nobody asks which of them were inserted.
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

/** Takes the key of a job that was just inserted; takes the job back when another has it. */
async function takeKey(tx: Tx, row: NewJob, seq: number): Promise<boolean> {
  const taken = await tx.run(sql`insert into daybook_job_key (tenant_id, name, key, job_seq, until_at)
    values (${row.tenant_id}, ${row.name}, ${row.key ?? ""}, ${seq}, ${row.key_until ?? null}) on conflict do nothing`);
  if (taken === 1) return true;
  await tx.run(sql`delete from daybook_line where seq = ${seq}`);
  await tx.run(sql`delete from daybook_job where seq = ${seq}`);
  return false;
}
