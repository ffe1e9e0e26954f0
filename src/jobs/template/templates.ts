// What a user does with templates, on the book and in a transaction. Each change counts the revision up, so that whoever makes
// a job from a template notices that it is no longer the one it read.
import { checkCount } from "../../core/count.ts";
import { durationMs } from "../../core/duration.ts";
import { conflict, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { checkPage, cutPage, type Page, type PageOptions } from "../../telemetry/report/page.ts";
import { checkPriority, type AnyJob, type Job, type JobSettings } from "../define.ts";
import type { LookUp, Within } from "../jobs.ts";
import { checkBackoff, type Backoff } from "../../core/backoff.ts";
import { archivedSince, findTemplate, selectTemplates, toTemplate } from "./template.ts";
import type { TemplateRecord, TemplateRow } from "./template.ts";

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
    archive: (name) => within((tx) => setArchived(tx, name, tx.now)),
    restore: (name) => within((tx) => setArchived(tx, name, null)),
  };
}

export function templateReads(store: Store, tenant: string) {
  return {
    get: async (name: string) => toTemplate(await findTemplate((statement) => store.read(statement), tenant, name)),
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
  const rows = await store.readHeavy<TemplateRow>(sql`${selectTemplates} where tenant_id = ${tenant}
    and seq < ${after ?? Number.MAX_SAFE_INTEGER} ${asked} order by seq desc limit ${limit + 1}`);
  return cutPage(rows, limit, ({ seq }) => seq, toTemplate);
}

async function createTemplate(
  tx: Tx,
  name: string,
  { jobName, params, ...settings }: TemplateOptions & { readonly jobName: string },
): Promise<TemplateRecord> {
  const row = settingColumns(settings);
  const created =
    await tx.run(sql`insert into daybook_job_template (tenant_id, id, name, job_name, params, queue, priority,
      attempts, backoff, timeout_ms, losses, created_at, updated_at)
    values (${tx.tenant}, ${tx.ids()}, ${checkName(name, "template name")}, ${jobName}, ${paramsJson(params)},
      ${row.queue}, ${row.priority}, ${row.attempts}, ${row.backoff}, ${row.timeoutMs}, ${row.losses},
      ${tx.now}, ${tx.now})
    on conflict do nothing`);
  const found = await findTemplate((statement) => tx.all(statement), tx.tenant, name);
  if (created === 1) return toTemplate(found);
  const { archivedAt } = found;
  const advice =
    archivedAt === null ? "edit it, or choose another name" : `restore it (${archivedSince(archivedAt)}) and edit it`;
  throw conflict(`there is a template ${quote(name)} already: ${advice}`, { template: name, archivedAt });
}

async function editTemplate(
  tx: Tx,
  name: string,
  { jobName, params, ...settings }: TemplateChanges & { readonly jobName: string | undefined },
): Promise<TemplateRecord> {
  const before = await findTemplate((statement) => tx.all(statement), tx.tenant, name, sql`${forUpdate}`);
  const row = settingColumns(settings, before);
  await tx.run(sql`update daybook_job_template as job_template set job_name = ${jobName ?? before.job},
      params = ${params === undefined ? before.params : paramsJson(params)}, queue = ${row.queue},
      priority = ${row.priority}, attempts = ${row.attempts}, backoff = ${row.backoff},
      timeout_ms = ${row.timeoutMs}, losses = ${row.losses}, updated_at = ${tx.now}, revision = revision + 1
    where seq = ${before.seq}`);
  return readBack(tx, name);
}

/** Once archived, it stays so since the first time. */
async function setArchived(tx: Tx, name: string, archivedAt: number | null): Promise<TemplateRecord> {
  await tx.run(sql`update daybook_job_template as job_template
    set archived_at = ${archivedAt}, updated_at = ${tx.now}, revision = revision + 1
    where tenant_id = ${tx.tenant} and name = ${name} and (archived_at is null) = ${archivedAt !== null}`);
  return readBack(tx, name);
}

async function readBack(tx: Tx, name: string): Promise<TemplateRecord> {
  return toTemplate(await findTemplate((statement) => tx.all(statement), tx.tenant, name));
}

type Settings = Pick<TemplateRow, "queue" | "priority" | "attempts" | "backoff" | "timeoutMs" | "losses">;

function settingColumns(to: Omit<TemplateChanges, "params">, before?: Settings): Settings {
  return {
    queue: changed(to.queue, before?.queue, (value) => checkName(value, "queue")),
    priority: changed(to.priority, before?.priority, checkPriority),
    attempts: changed(to.attempts, before?.attempts, (value) => checkCount(value, "attempts", 1)),
    backoff: changed(to.backoff, before?.backoff, backoffJson),
    timeoutMs: changed(to.timeout, before?.timeoutMs, (value) => durationMs(value, "timeout", { min: 1 })),
    losses: changed(to.losses, before?.losses, (value) => checkCount(value, "losses", 0)),
  };
}

function changed<T, Kept>(
  to: T | null | undefined,
  from: Kept | null | undefined,
  keep: (value: T) => Kept,
): Kept | null {
  if (to === undefined) return from ?? null;
  return to === null ? null : keep(to);
}

function backoffJson(backoff: Backoff): string {
  checkBackoff(backoff);
  return toJson(backoff, { what: "backoff" });
}

function paramsJson(params: unknown): string {
  if (params === null) throw invalid("params is null: leave it out when there are no defaults");
  return toJson(params ?? {}, { what: "params" });
}
