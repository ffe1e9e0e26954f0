// A template: a name under which the work, its default params and its settings are kept. Jobs are made from what it says
// at that moment; what becomes of it later does not change them.
//
// Enqueue from a template: its defaults, the caller's overrides over them, checked like any other params and kept in the
// job. Checking may take a while, so it happens between reading the template and making the job; the job is only made
// if the template is still the one that was read, and on PostgreSQL it is locked until that has committed.
import { conflict } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { noSuch } from "../../core/suggest.ts";
import { isoTime } from "../../core/time.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import { shape } from "../../storage/shape.ts";
import type { Row, Tx } from "../../storage/store.ts";
import { forShare } from "../../storage/word.ts";
import type { ReadRows } from "../definition.ts";
import type { LookUp, Within } from "../jobs.ts";
import { prepareJob, type EnqueueOptions, type Prepared } from "../prepare.ts";
import type { AwaitableJob } from "../result.ts";
import type { Backoff } from "../../core/backoff.ts";

/** Where a setting is null, the definition of the job decides. */
export type TemplateRecord = {
  readonly id: string;
  readonly name: string;
  readonly job: string;
  /** What a job is given unless `enqueueFrom` says otherwise. */
  readonly params: unknown;
  readonly queue: string | null;
  readonly priority: number | null;
  readonly attempts: number | null;
  readonly backoff: Backoff | null;
  readonly timeoutMs: number | null;
  readonly losses: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** While this is set, no jobs are made from it. */
  readonly archivedAt: number | null;
  /** Counts its changes, from 1. */
  readonly revision: number;
};

/** For `shape`. */
export const selectTemplates = sql`select seq as ".seq", id, name, job_name as job, params as "params json", queue, priority,
    attempts, backoff as "backoff json", timeout_ms as "timeoutMs", losses, created_at as "createdAt",
    updated_at as "updatedAt", archived_at as "archivedAt", revision
  from daybook_job_template job_template`;

// So many names are looked through for the one that was meant; a slip of the hand is no reason to read them all.
const namesReadMax = 1000;

/** The template of that name. `lock` is what PostgreSQL needs to keep the row as it was read. */
export async function readTemplate(
  read: ReadRows,
  tenant: string,
  name: string,
  lock = sql``,
): Promise<TemplateRecord | undefined> {
  const rows = await read<Row>(sql`${selectTemplates} where tenant_id = ${tenant} and name = ${name} ${lock}`);
  return shape<TemplateRecord>(rows)[0];
}

/** The same, or an error that says which name was probably meant. */
export async function findTemplate(read: ReadRows, tenant: string, name: string, lock?: Sql): Promise<TemplateRecord> {
  const found = await readTemplate(read, tenant, name, lock);
  if (found !== undefined) return found;
  const others = await read<{ name: string }>(sql`select name from daybook_job_template job_template
    where tenant_id = ${tenant} order by name limit ${namesReadMax}`);
  const known = others.map((each) => each.name);
  throw noSuch("there is no template", name, known, { template: name });
}

export function archivedSince(archivedAt: number): string {
  return `it was archived at ${isoTime(archivedAt)}`;
}

type From = {
  readonly template: string;
  readonly overrides: unknown;
  readonly options: EnqueueOptions;
  readonly lookUp: LookUp;
  readonly enqueue: (tx: Tx, prepared: Prepared) => Promise<AwaitableJob>;
};

const triesMax = 10;

export async function enqueueFrom(within: Within, from: From): Promise<AwaitableJob> {
  for (let tries = 0; tries < triesMax; tries++) {
    const row = await within((tx) => readActive(tx, from.template));
    const params = mergeParams(row.params, from.overrides);
    const options = { ...settingsOf(row), ...definedOnly(from.options) };
    const prepared = await prepareJob(await from.lookUp(row.job), params, options);
    const made = await within(async (tx) =>
      (await isStill(tx, row)) ? from.enqueue(tx, { ...prepared, template_id: row.id }) : undefined,
    );
    if (made !== undefined) return made;
  }
  throw conflict(`template ${quote(from.template)} is changed all the time: try again`, { template: from.template });
}

async function readActive(tx: Tx, name: string): Promise<TemplateRecord> {
  const row = await findTemplate((statement) => tx.all(statement), tx.tenant, name, sql`${forShare}`);
  if (row.archivedAt === null) return row;
  throw conflict(
    `template ${quote(name)} makes no new jobs, ${archivedSince(row.archivedAt)}: ` +
      `bring it back with templates.restore(${quote(name)}), or use another`,
    { template: name, archivedAt: row.archivedAt },
  );
}

async function isStill(tx: Tx, { id, revision }: TemplateRecord): Promise<boolean> {
  const same = await tx.get(sql`select seq from daybook_job_template job_template
    where tenant_id = ${tx.tenant} and id = ${id} and revision = ${revision} ${forShare}`);
  return same !== undefined;
}

/** Objects are laid over each other, property by property; anything else is replaced as a whole. An override that is
 *  undefined was not given. */
export function mergeParams(defaults: unknown, overrides: unknown): unknown {
  if (overrides === undefined || overrides === null) return defaults;
  if (!isObject(defaults) || !isObject(overrides)) return overrides;
  return { ...defaults, ...definedOnly(overrides) };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function settingsOf(template: TemplateRecord): EnqueueOptions {
  const { queue, priority, attempts, backoff, timeoutMs: timeout, losses } = template;
  const settings = Object.entries({ queue, priority, attempts, backoff, timeout, losses });
  return Object.fromEntries(settings.filter(([, value]) => value !== null));
}

function definedOnly<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
