// A template: a name under which the work, its default params and its settings are kept. Jobs are made from what it says
// at that moment; what becomes of it later does not change them.
//
// Enqueue from a template: its defaults, the caller's overrides over them, checked like any other params and kept in the
// job. Checking may take a while, so it happens between reading the template and making the job; the job is only made
// if the template is still the one that was read, and on PostgreSQL it is locked until that has committed.
import { conflict, invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { noSuch, refuseUnknown } from "../../core/suggest.ts";
import { isoTime } from "../../core/time.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { shape } from "../../storage/shape.ts";
import type { Row, Store, Tx } from "../../storage/store.ts";
import { forShare } from "../../storage/word.ts";
import type { ReadRows } from "../definition.ts";
import { endedStatuses, type FinishedStatus } from "../job.ts";
import type { LookUp, Within } from "../jobs.ts";
import type { Ports } from "../kind.ts";
import { keptNotice, shownNotice, type Notice, type ShownNotice } from "../notice.ts";
import { prepareJob, checkSettings, settingNames } from "../define.ts";
import type { EnqueueOptions, Prepared, AnyJob, Job, JobSettings } from "../define.ts";
import type { AwaitableJob } from "../result.ts";
import type { Backoff } from "../../core/retry.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { checkPage, cutPage, type Page, type PageOptions } from "../../core/page.ts";

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
  readonly notify: ShownNotice | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** While this is set, no jobs are made from it. */
  readonly archivedAt: number | null;
  /** Counts its changes, from 1. */
  readonly revision: number;
};

/** For `shape`. */
export const selectTemplates = sql`select seq as ".seq", id, name, job_name as job, params as "params json", queue, priority,
    attempts, backoff as "backoff json", timeout_ms as "timeoutMs", losses, notify as "notify json", created_at as "createdAt",
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
  return toTemplates(rows)[0];
}

export function toTemplates(rows: readonly Row[]): TemplateRecord[] {
  return shape<TemplateRecord>(rows).map((each) => ({ ...each, notify: shownNotice(each.notify) }));
}

/** The same, or an error that says which name was probably meant. */
export async function findTemplate(read: ReadRows, tenant: string, name: string, lock?: Sql): Promise<TemplateRecord> {
  if (typeof name !== "string") checkName(name, "template name");
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

/** The template, unless it was archived. */
export async function readActive(tx: Tx, name: string): Promise<TemplateRecord> {
  const row = await findTemplate((statement) => tx.all(statement), tx.tenant, name, sql`${forShare}`);
  if (row.archivedAt === null) return row;
  const why = `template ${quote(name)} makes no new jobs, ${archivedSince(row.archivedAt)}`;
  const advice = `bring it back with templates.restore(${quote(name)}), or use another`;
  throw conflict(`${why}: ${advice}`, { template: name, archivedAt: row.archivedAt });
}

async function isStill(tx: Tx, { id, revision }: TemplateRecord): Promise<boolean> {
  const same = await tx.get(sql`select seq from daybook_job_template job_template
    where tenant_id = ${tx.tenant} and id = ${id} and revision = ${revision} ${forShare}`);
  return same !== undefined;
}

/** Objects are laid over each other by property, anything else is replaced as a whole. What is undefined was not given. */
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

export function definedOnly<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}

// What a user does with templates, on the book and in a transaction. Each change counts the revision up, so that a caller that makes
// a job from a template notices that it is no longer the one it read.

/** What is left out, the definition of the job decides. */
export type TemplateSettings = JobSettings & { readonly notify?: Notice<FinishedStatus> };

/** `params` are defaults: a job gets them with the overrides of `enqueueFrom` laid over, property by property. */
export type TemplateOptions<Input = unknown> = TemplateSettings & { readonly params?: Partial<Input> };

/** What is left out stays; null gives a setting back to the definition. `params` replaces all the defaults there were. */
export type TemplateChanges<Input = unknown> = {
  readonly [Setting in keyof TemplateSettings]?: TemplateSettings[Setting] | null;
} & { readonly params?: Partial<Input> };

export type TemplateVerbs = {
  /** Keeps a job with default params and settings under a name, for `jobs.enqueueFrom`.
   *
   *  ```ts
   *  await book.templates.create("receipt", { job: sendReceipt, params: { orderId: "o-17" }, attempts: 8 });
   *  ``` */
  create<Input>(
    name: string,
    options: { readonly job: Job<Input> | string } & TemplateOptions<NoInfer<Input>>,
  ): Promise<TemplateRecord>;
  /** What is left out stays, null gives a setting back to the definition. Jobs that exist do not change. */
  edit<Input>(
    name: string,
    changes: { readonly job?: Job<Input> | string } & TemplateChanges<NoInfer<Input>>,
  ): Promise<TemplateRecord>;
  /** No more jobs are made from it; those that exist are left alone. */
  archive(name: string): Promise<TemplateRecord>;
  restore(name: string): Promise<TemplateRecord>;
};

export type TemplateFilter = PageOptions & {
  /** Only those that are archived, or only those that are not; both when it is left out. */
  readonly archived?: boolean;
};

export type TemplatePage = Page<TemplateRecord>;

export type Templates = TemplateVerbs & ReturnType<typeof templateReads>;

type Given = TemplateChanges & { readonly job?: AnyJob | string };

const known = ["job", "params", ...settingNames, "notify"];

export function templateVerbs(ports: Pick<Ports, "notices">, lookUp: LookUp, within: Within): TemplateVerbs {
  return {
    async create(name: string, given: TemplateOptions & { readonly job: AnyJob | string }) {
      refuseUnknown(given, known, `template ${quote(name)}`);
      const { job, ...options } = given;
      const jobName = (await lookUp(job)).name;
      return within((tx) => createTemplate(tx, ports, name, { ...options, jobName }));
    },
    async edit(name: string, given: Given) {
      refuseUnknown(given, known, `template ${quote(name)}`);
      const { job, ...changes } = given;
      if (job === undefined && Object.values(changes).every((value) => value === undefined)) {
        throw invalid(`nothing to change in template ${quote(name)}: give one of ${known.join(", ")}`);
      }
      const jobName = job === undefined ? undefined : (await lookUp(job)).name;
      return within(async (tx) => {
        const changed = await change(tx, name, toCells(tx, ports, name, { ...changes, jobName }));
        if (changes.notify !== undefined) await ports.notices?.changed(tx);
        return changed;
      });
    },
    // Once archived, it stays so since the first time.
    archive: (name) => within((tx) => change(tx, name, { archived_at: tx.now }, sql`and archived_at is null`)),
    restore: (name) => within((tx) => change(tx, name, { archived_at: null }, sql`and archived_at is not null`)),
  };
}

export function templateReads(store: Store, tenant: string) {
  return {
    get: (name: string) => findTemplate((statement) => store.read(statement), tenant, name),
    /** The newest first. */
    async list(filter: TemplateFilter = {}): Promise<TemplatePage> {
      refuseUnknown(filter, ["archived", "limit", "after"], "the list of templates");
      const { archived } = filter;
      if (archived !== undefined && typeof archived !== "boolean") {
        throw invalid(`archived is ${quote(archived)}: give true, false, or leave it out for both`);
      }
      const { limit, after } = checkPage(filter);
      const asked = archived === undefined ? sql`` : sql`and (archived_at is not null) = ${archived}`;
      const rows = await store.readHeavy<Row>(sql`${selectTemplates} where tenant_id = ${tenant}
        and seq < ${after ?? Number.MAX_SAFE_INTEGER} ${asked} order by seq desc limit ${limit + 1}`);
      const { items, next } = cutPage(rows, limit, (row) => row[".seq"] as number);
      return { items: toTemplates(items), next };
    },
  };
}

async function createTemplate(
  tx: Tx,
  ports: Pick<Ports, "notices">,
  name: string,
  given: TemplateOptions & { readonly jobName: string },
): Promise<TemplateRecord> {
  const cells = toCells(tx, ports, name, { params: {}, ...given });
  if (given.notify !== undefined) await ports.notices?.changed(tx);
  const created = await tx.run(sql`insert into daybook_job_template
      (tenant_id, id, name, job_name, params, created_at, updated_at, revision)
    values (${tx.tenant}, ${tx.ids()}, ${checkName(name, "template name")}, '', '', ${tx.now}, ${tx.now}, 0)
    on conflict do nothing`);
  if (created === 1) return change(tx, name, cells);
  const { archivedAt } = await findTemplate((statement) => tx.all(statement), tx.tenant, name);
  const advice =
    archivedAt === null ? "edit it, or choose another name" : `restore it (${archivedSince(archivedAt)}) and edit it`;
  throw conflict(`there is a template ${quote(name)} already: ${advice}`, { template: name, archivedAt });
}

type Cells = { readonly [column: string]: string | number | null | undefined };

/** What is undefined stays as it is. */
async function change(tx: Tx, name: string, cells: Cells, which = sql``): Promise<TemplateRecord> {
  const set = Object.entries(cells).flatMap(([column, to]) =>
    to === undefined ? [] : [sql`${rawSql(column)} = ${to},`],
  );
  await tx.run(sql`update daybook_job_template as job_template
    set ${joinSql(set)} updated_at = ${tx.now}, revision = revision + 1
    where tenant_id = ${tx.tenant} and name = ${name} ${which}`);
  return findTemplate((statement) => tx.all(statement), tx.tenant, name);
}

function toCells(
  { tenant }: Tx,
  ports: Pick<Ports, "notices">,
  name: string,
  { jobName, params, notify, ...to }: TemplateChanges & { readonly jobName?: string | undefined },
): Cells {
  const given = Object.fromEntries(Object.entries(to).filter(([, value]) => value !== null));
  if (params === null) throw invalid("params is null: leave it out when there are no defaults");
  const { timeout, ...cells } = { ...to, ...checkSettings(given) } as Cells;
  const told = { ends: endedStatuses, what: `template ${quote(name)}`, tenant };
  return {
    ...cells,
    timeout_ms: timeout,
    job_name: jobName,
    notify: notify === undefined || notify === null ? notify : keptNotice(ports, notify, told),
    params: params === undefined ? undefined : toJson(params, { what: "params" }),
  };
}
