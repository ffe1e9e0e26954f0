// What a user does with templates, on the book and in a transaction.
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { joinSql, sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { checkPage, cutPage, type Page } from "../../telemetry/report/page.ts";
import type { AnyJob, Job, JobSettings } from "../define.ts";
import type { LookUp, Within } from "../jobs.ts";
import { findTemplate, selectTemplates, toTemplate, type TemplateRecord, type TemplateRow } from "./template.ts";
import { archiveTemplate, createTemplate, editTemplate, restoreTemplate } from "./write-template.ts";

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

export type TemplateFilter = {
  /** Only those that are archived, or only those that are not; both when it is left out. */
  readonly archived?: boolean;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
};

export type TemplatePage = Page<TemplateRecord>;

export type Templates = TemplateVerbs & {
  get(name: string): Promise<TemplateRecord>;
  /** The newest first. */
  list(filter?: TemplateFilter): Promise<TemplatePage>;
};

type Given = TemplateChanges & { readonly job?: AnyJob | string };

const known = ["job", "params", "queue", "priority", "attempts", "backoff", "timeout", "losses"];

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
      return within((tx) => editTemplate(tx, name, { ...changes, jobName }));
    },
    archive: (name) => within((tx) => archiveTemplate(tx, name)),
    restore: (name) => within((tx) => restoreTemplate(tx, name)),
  };
}

export function templateReads(store: Store, tenant: string): Omit<Templates, keyof TemplateVerbs> {
  return {
    get: async (name) => toTemplate(await findTemplate((statement) => store.read(statement), tenant, name)),
    list: (filter = {}) => listTemplates(store, tenant, filter),
  };
}

async function listTemplates(store: Store, tenant: string, filter: TemplateFilter): Promise<TemplatePage> {
  refuseUnknown(filter, ["archived", "limit", "after"], "the list of templates");
  const { archived } = filter;
  if (archived !== undefined && typeof archived !== "boolean") {
    throw invalid(`archived is ${quote(archived)}: give true, false, or leave it out for both`);
  }
  const { limit, after } = checkPage(filter);
  const rows = await store.readHeavy<TemplateRow>(
    joinSql([
      sql`${selectTemplates} where tenant_id = ${tenant} and seq < ${after ?? Number.MAX_SAFE_INTEGER}`,
      ...(archived === undefined ? [] : [archived ? sql`and archived_at is not null` : sql`and archived_at is null`]),
      sql`order by seq desc limit ${limit + 1}`,
    ]),
  );
  return cutPage(rows, limit, ({ seq }) => seq, toTemplate);
}
