// Enqueue from a template: its defaults, the caller's overrides over them, checked like any other params and kept in the
// job. Checking may take a while, so it happens between reading the template and making the job; the job is only made
// if the template is still the one that was read, and on PostgreSQL it is locked until that has committed.
import { DaybookError } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { forShare } from "../../storage/word.ts";
import type { LookUp, Within } from "../jobs.ts";
import { prepareJob, type EnqueueOptions, type Prepared } from "../prepare.ts";
import type { AwaitableJob } from "../result.ts";
import { findTemplate, toTemplate, type TemplateRow } from "./template.ts";
import { archivedSince } from "./write-template.ts";

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
    const params = mergeParams(JSON.parse(row.params), from.overrides);
    const options = { ...settingsOf(row), ...definedOnly(from.options) };
    const prepared = await prepareJob(await from.lookUp(row.job), params, options);
    const made = await within(async (tx) =>
      (await isStill(tx, row)) ? from.enqueue(tx, { ...prepared, template_id: row.id }) : undefined,
    );
    if (made !== undefined) return made;
  }
  throw new DaybookError("conflict", `template ${quote(from.template)} is changed all the time: try again`, {
    details: { template: from.template },
  });
}

async function readActive(tx: Tx, name: string): Promise<TemplateRow> {
  const row = await findTemplate((statement) => tx.all(statement), tx.tenant, name, sql`${forShare}`);
  if (row.archivedAt === null) return row;
  throw new DaybookError(
    "conflict",
    `template ${quote(name)} makes no new jobs, ${archivedSince(row.archivedAt)}: ` +
      `bring it back with templates.restore(${quote(name)}), or use another`,
    { details: { template: name, archivedAt: row.archivedAt } },
  );
}

async function isStill(tx: Tx, { seq, revision }: TemplateRow): Promise<boolean> {
  const same = await tx.get(
    sql`select seq from daybook_job_template job_template where seq = ${seq} and revision = ${revision} ${forShare}`,
  );
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

function settingsOf(row: TemplateRow): EnqueueOptions {
  const { queue, priority, attempts, backoff, timeoutMs: timeout, losses } = toTemplate(row);
  const settings = Object.entries({ queue, priority, attempts, backoff, timeout, losses });
  return Object.fromEntries(settings.filter(([, value]) => value !== null));
}

function definedOnly<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
