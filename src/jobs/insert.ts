// Writes new jobs: a row of `job`, which never changes, and a row of the line. This is the hottest insert of the book, so most
// jobs name only the columns that they use, and many jobs are one statement each for job and line.
import { sql, rawSql, type Value } from "../storage/sql.ts";
import { anyOf, rowsInto, unnested, type ColumnType } from "../storage/word.ts";
import type { Tx } from "../storage/store.ts";
import type { Beginning, JobRow } from "./job.ts";
import { waitsKey } from "./park.ts";
import { tie } from "./state.ts";

/** What a new job says for itself; what it leaves out has its column's default. Its place in line is its own number's unless it
 *  says another. */
export type NewJob = Beginning &
  Partial<JobRow> & {
    /** False: it has a key and does not take it. */
    readonly holdsKey?: boolean;
    /** Until when its key is taken, if that is a window of time. */
    readonly key_until?: number | null;
  };

type Columns = Readonly<Record<string, ColumnType>>;

const jobColumns = {
  seq: "integer",
  tenant_id: "text",
  id: "text",
  lane_seq: "integer",
  name: "text",
  priority: "integer",
  created_at: "integer",
  params: "text",
  attempts: "integer",
  losses_max: "integer",
  timeout_ms: "integer",
  backoff: "text",
} as const satisfies Columns;

// Most jobs use none of these, and do not pay for saying so.
const moreJobColumns = {
  due_at: "integer",
  origin: "text",
  attempt: "integer",
  losses: "integer",
  alone: "integer",
  retry_of: "integer",
  chain_seq: "integer",
  key: "text",
  key_scope: "text",
  idempotency_key: "text",
  limits: "text",
  limit_key: "text",
  tags: "text",
  template_id: "text",
  group_seq: "integer",
  group_slot: "integer",
  kind: "text",
  kind_seq: "integer",
  about: "text",
  cause_run_id: "text",
  root_run_id: "text",
  app: "text",
  instance: "integer",
  registration: "text",
  traceparent: "text",
} as const satisfies Columns;

const defaults = { origin: "enqueued", attempt: 1, losses: 0, alone: 0 };

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

const moreLineColumns = {
  kind: "text",
  kind_seq: "integer",
  order_key: "text",
  group_seq: "integer",
  group_slot: "integer",
  awaited: "integer",
} as const satisfies Columns;

type Shape = { readonly job: Columns; readonly line: Columns };

const usual: Shape = { job: jobColumns, line: lineColumns };
const everything: Shape = { job: { ...jobColumns, ...moreJobColumns }, line: { ...lineColumns, ...moreLineColumns } };

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

const optional = Object.keys({ ...moreJobColumns, awaited: 0 }) as (keyof NewJob)[];

function isUsual(row: NewJob): boolean {
  if (row.available_at > row.created_at) return false;
  for (const name of optional) {
    const value = row[name];
    if (value != null && value !== defaults[name as keyof typeof defaults] && !(name === "awaited" && value === 0))
      return false;
  }
  return true;
}

type Filled = Record<string, Value>;

function fill(row: NewJob, shape: Shape): Filled {
  const ordered = row.kind != null && row.limit_key != null;
  const waits_key = row.waits_key;
  const line = {
    ties:
      (row.key == null ? 0 : tie.key) |
      (row.limits == null ? 0 : tie.limit) |
      (ordered ? tie.order : 0) |
      (row.group_seq == null ? 0 : tie.group),
    waits_key,
    position: row.position ?? null,
  };
  if (shape === usual) return { ...row, ...line, seq: null };
  const { tenant_id: tenant, limit_key } = row;
  const order_key = ordered ? waitsKey({ tenant, waitsFor: "order", key: limit_key ?? "" }) : null;
  const due_at = row.available_at > row.created_at ? row.available_at : null;
  return { ...defaults, awaited: 0, ...row, ...line, order_key, due_at, seq: null };
}

// SQLite's only writer knows the next numbers. The place in line is the number × 100 unless the job keeps another's.
async function insertOnSqlite(tx: Tx, shape: Shape, rows: readonly Filled[]): Promise<number> {
  const last = await tx.get<{ seq: number | null }>(sql`select max(seq) as seq from daybook_job`);
  let next = last?.seq ?? 0;
  for (const row of rows) {
    const seq = ++next;
    row["seq"] = seq;
    row["position"] ??= seq * 100;
  }
  const texts = sqliteTexts(shape);
  const inserted = await tx.run(rowsInto(texts.job, texts.jobNames, rows));
  const there = inserted === rows.length ? rows : await whichAreThere(tx, rows);
  if (there.length > 0) await tx.run(rowsInto(texts.line, texts.lineNames, there));
  return inserted;
}

async function whichAreThere(tx: Tx, rows: readonly Filled[]): Promise<Filled[]> {
  const seqs = rows.map((row) => row["seq"] as number);
  const found = await tx.all<{ seq: number }>(sql`select seq from daybook_job where seq ${anyOf("integer", seqs)}`);
  const there = new Set(found.map((row) => row.seq));
  for (const row of rows) if (!there.has(row["seq"] as number)) row["seq"] = null;
  return rows.filter((row) => row["seq"] !== null);
}

type Texts = {
  readonly job: readonly [string];
  readonly jobNames: readonly string[];
  readonly line: readonly [string];
  readonly lineNames: readonly string[];
};
const textsOf = new Map<Shape, Texts>();

function sqliteTexts(shape: Shape): Texts {
  let texts = textsOf.get(shape);
  if (texts === undefined) {
    const into = (head: string, columns: Columns): readonly [string] => {
      const names = Object.keys(columns);
      const marks = names.map(() => "?").join(", ");
      return Object.freeze([`${head} (${names.join(", ")}) values (${marks}) on conflict do nothing`] as const);
    };
    texts = {
      job: into("insert into daybook_job", shape.job),
      jobNames: Object.keys(shape.job),
      line: into("insert into daybook_line", shape.line),
      lineNames: Object.keys(shape.line),
    };
    textsOf.set(shape, texts);
  }
  return texts;
}

// One statement for job and line, whatever the number of rows: PostgreSQL numbers them on the way. Jobs of the usual shape have
// nothing that could be taken already, so nobody asks which of them were inserted.
async function insertOnPostgres(tx: Tx, shape: Shape, rows: readonly Filled[]): Promise<number> {
  const { seq: _own, ...job } = shape.job;
  const { seq: _same, position: _place, ...line } = shape.line;
  const given = rows.map((row) => ({ ...row, given: row["position"] ?? null }));
  const columns = { ...job, ...line, given: "integer" } as const;
  const [jobNames, lineNames] = [job, line].map((of) => rawSql(Object.keys(of).join(", ")));
  const numbered = sql`with v as materialized (
      select nextval('daybook_job_seq_seq') as seq, u.*
      from ${unnested("u", columns, given)} order by u.ordinality),
    j as (insert into daybook_job (seq, ${jobNames ?? sql``}) select seq, ${jobNames ?? sql``} from v
      ${shape === usual ? sql`` : sql`on conflict do nothing`} returning seq, id)`;
  const standing = sql`insert into daybook_line (seq, position, ${lineNames ?? sql``})
    select v.seq, coalesce(v.given, v.seq * 100), ${lineNames ?? sql``}`;
  if (shape === usual) return tx.run(sql`${numbered} ${standing} from v`);
  const made = await tx.all<{ seq: number; id: string }>(sql`${numbered},
    l as (${standing} from v join (select seq from j) as made using (seq)) select seq, id from j`);
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
