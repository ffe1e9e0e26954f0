// Creating, changing and archiving templates. Each change counts the revision up, so that whoever makes a job from a
// template notices that it is no longer the one it read.
import { checkCount } from "../../core/count.ts";
import { durationMs } from "../../core/duration.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { isoTime } from "../../core/time.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { checkPriority } from "../define.ts";
import { checkBackoff, type Backoff } from "../../core/backoff.ts";
import { findTemplate, toTemplate, type TemplateRecord, type TemplateRow } from "./template.ts";
import type { TemplateChanges, TemplateOptions } from "./templates.ts";

export async function createTemplate(
  tx: Tx,
  name: string,
  { jobName, params, ...settings }: TemplateOptions & { readonly jobName: string },
): Promise<TemplateRecord> {
  const row = settingColumns(settings, noSettings);
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
  throw new DaybookError("conflict", `there is a template ${quote(name)} already: ${advice}`, {
    details: { template: name, archivedAt },
  });
}

export async function editTemplate(
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
export async function archiveTemplate(tx: Tx, name: string): Promise<TemplateRecord> {
  await tx.run(sql`update daybook_job_template as job_template
    set archived_at = ${tx.now}, updated_at = ${tx.now}, revision = revision + 1
    where tenant_id = ${tx.tenant} and name = ${name} and archived_at is null`);
  return readBack(tx, name);
}

export async function restoreTemplate(tx: Tx, name: string): Promise<TemplateRecord> {
  await tx.run(sql`update daybook_job_template as job_template
    set archived_at = null, updated_at = ${tx.now}, revision = revision + 1
    where tenant_id = ${tx.tenant} and name = ${name} and archived_at is not null`);
  return readBack(tx, name);
}

export function archivedSince(archivedAt: number): string {
  return `it was archived at ${isoTime(archivedAt)}`;
}

async function readBack(tx: Tx, name: string): Promise<TemplateRecord> {
  return toTemplate(await findTemplate((statement) => tx.all(statement), tx.tenant, name));
}

type Settings = Pick<TemplateRow, "queue" | "priority" | "attempts" | "backoff" | "timeoutMs" | "losses">;

const noSettings: Settings = {
  queue: null,
  priority: null,
  attempts: null,
  backoff: null,
  timeoutMs: null,
  losses: null,
};

function settingColumns(to: Omit<TemplateChanges, "params">, before: Settings): Settings {
  return {
    queue: changed(to.queue, before.queue, (value) => checkName(value, "queue")),
    priority: changed(to.priority, before.priority, checkPriority),
    attempts: changed(to.attempts, before.attempts, (value) => checkCount(value, "attempts", 1)),
    backoff: changed(to.backoff, before.backoff, backoffJson),
    timeoutMs: changed(to.timeout, before.timeoutMs, (value) => durationMs(value, "timeout", { min: 1 })),
    losses: changed(to.losses, before.losses, (value) => checkCount(value, "losses", 0)),
  };
}

function changed<T, Kept>(to: T | null | undefined, from: Kept | null, keep: (value: T) => Kept): Kept | null {
  if (to === undefined) return from;
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
