// What a user does with templates, on the book and in a transaction. Each change counts the revision up, so that whoever makes
// a job from a template notices that it is no longer the one it read.
import { conflict, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { joinSql, rawSql, sql } from "../../storage/sql.ts";
import { shape } from "../../storage/shape.ts";
import type { Row, Store, Tx } from "../../storage/store.ts";
import { checkPage, cutPage, type Page, type PageOptions } from "../../telemetry/report/page.ts";
import { checkSettings, settingNames, type AnyJob, type Job, type JobSettings } from "../define.ts";
import type { LookUp, Within } from "../jobs.ts";
import { archivedSince, findTemplate, selectTemplates } from "./template.ts";
import type { TemplateRecord } from "./template.ts";

/** What is left out, the definition of the job decides. */
export type TemplateSettings = JobSettings;

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
    options: { readonly job: Job<Input> } & TemplateOptions<NoInfer<Input>>,
  ): Promise<TemplateRecord>;
  create(name: string, options: { readonly job: string } & TemplateOptions): Promise<TemplateRecord>;
  /** What is left out stays, null gives a setting back to the definition. Jobs that exist do not change. */
  edit<Input>(
    name: string,
    changes: { readonly job: Job<Input> } & TemplateChanges<NoInfer<Input>>,
  ): Promise<TemplateRecord>;
  edit(name: string, changes: { readonly job?: string } & TemplateChanges): Promise<TemplateRecord>;
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

const known = ["job", "params", ...settingNames];

export function templateVerbs(lookUp: LookUp, within: Within): TemplateVerbs {
  return {
    async create(name: string, { job, ...options }: TemplateOptions & { readonly job: AnyJob | string }) {
      refuseUnknown(options, known, `template ${quote(name)}`);
      const jobName = (await lookUp(job)).name;
      return within((tx) => createTemplate(tx, name, { ...options, jobName }));
    },
    async edit(name: string, { job, ...changes }: Given) {
      refuseUnknown(changes, known, `template ${quote(name)}`);
      if (job === undefined && Object.values(changes).every((value) => value === undefined)) {
        throw invalid(`nothing to change in template ${quote(name)}: give one of ${known.join(", ")}`);
      }
      const jobName = job === undefined ? undefined : (await lookUp(job)).name;
      return within((tx) => change(tx, name, toCells({ ...changes, jobName })));
    },
    archive: (name) => within((tx) => setArchived(tx, name, tx.now)),
    restore: (name) => within((tx) => setArchived(tx, name, null)),
  };
}

export function templateReads(store: Store, tenant: string) {
  return {
    get: (name: string) => findTemplate((statement) => store.read(statement), tenant, name),
    /** The newest first. */
    list: (filter: TemplateFilter = {}) => listTemplates(store, tenant, filter),
  };
}

async function listTemplates(store: Store, tenant: string, filter: TemplateFilter): Promise<TemplatePage> {
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
  return { items: shape(items), next };
}

async function createTemplate(
  tx: Tx,
  name: string,
  given: TemplateOptions & { readonly jobName: string },
): Promise<TemplateRecord> {
  const cells = toCells({ params: {}, ...given });
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

/** Once archived, it stays so since the first time. */
function setArchived(tx: Tx, name: string, archived_at: number | null): Promise<TemplateRecord> {
  return change(tx, name, { archived_at }, sql`and (archived_at is null) = ${archived_at !== null}`);
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

function toCells({ jobName, params, ...to }: TemplateChanges & { readonly jobName?: string | undefined }): Cells {
  const given = Object.fromEntries(Object.entries(to).filter(([, value]) => value !== null));
  const { timeout, ...cells } = { ...to, ...checkSettings(given) } as Cells;
  return {
    ...cells,
    timeout_ms: timeout,
    job_name: jobName,
    params: params === undefined ? undefined : paramsJson(params),
  };
}

function paramsJson(params: unknown): string {
  if (params === null) throw invalid("params is null: leave it out when there are no defaults");
  return toJson(params, { what: "params" });
}
