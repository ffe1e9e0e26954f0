// What a schedule fires: a job, a template or an event. The definition's settings (attempts, limits …) are stored when the schedule
// is made, so that a process that does not know the definition can fire it too.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { DaybookError, invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { forShare } from "../storage/word.ts";
import {
  defineJob,
  limitsOf,
  prepareJob,
  type AnyJob,
  type Job,
  type EnqueueOptions,
  type Prepared,
} from "../jobs/define.ts";
import { findDefinition, neverHostedWarning, type ReadRows } from "../jobs/definition.ts";
import type { Announce, ToSay } from "../jobs/kind.ts";
import { mergeParams, readTemplate } from "../jobs/template/template.ts";
import type { ScheduleRow } from "./schedule.ts";

export type TargetOptions<Input = unknown> = Pick<EnqueueOptions, "queue" | "priority" | "tags"> &
  (
    | (NoEvent & { readonly job: Job<Input>; readonly template?: undefined } & Needed<"params", Input>)
    | (NoEvent & { readonly job: string; readonly template?: undefined; readonly params?: unknown })
    | (NoEvent & { readonly template: string; readonly job?: undefined; readonly params?: unknown })
    | (NoJob & { readonly event: SaidEvent<Input> } & Needed<"payload", Input>)
    | (NoJob & { readonly event: string; readonly payload?: unknown })
  );

/** The params or the payload. They may be left out where `{}` or nothing would do, as in `enqueue` and `publish`. */
type Needed<Key extends string, Input> =
  Record<never, never> extends Input
    ? { readonly [key in Key]?: Input }
    : undefined extends Input
      ? { readonly [key in Key]?: Input }
      : { readonly [key in Key]: Input };

type NoEvent = { readonly event?: undefined; readonly payload?: undefined };
type NoJob = { readonly job?: undefined; readonly template?: undefined; readonly params?: undefined };

/** An event definition, typed here because this room may not import the room of events. */
type SaidEvent<Input = unknown> = {
  readonly kind: "event";
  readonly topic: string;
  readonly schema: StandardSchemaV1 | undefined;
  readonly "~types"?: { readonly input: Input; readonly output: unknown };
};

// The run that makes a schedule is not the cause of its fires, and they are not part of its trace.
const noCause = { cause: undefined, traceparent: undefined, warning: undefined };

/** As it is stored: what `enqueue` needs, and for a template the overrides of its params. */
export type StoredTarget = {
  readonly prepared: Omit<Prepared, keyof typeof noCause>;
  readonly overrides: unknown;
  /** The schedule's own settings; the others come from the definition or the template. */
  readonly settings: Pick<EnqueueOptions, "queue" | "priority" | "tags">;
  /** No program had hosted the job when this was written, so each fire asks the book again. */
  readonly unknown?: true;
};

/** An event as it is stored, with its payload in place of a job's params. */
type StoredEvent = {
  readonly prepared: Pick<Prepared, "params" | "priority">;
  readonly overrides: null;
  readonly settings: Pick<EnqueueOptions, "priority">;
};

export type CheckedTarget = Pick<ScheduleRow, "target" | "target_name" | "job"> & {
  /** No program has hosted its job yet. That is allowed, with a warning. */
  readonly unknown: boolean;
  readonly warning: string | null;
};

/** Finds a job's definition, in this process or in the book. */
export type LookUp = (name: string) => Awaitable<AnyJob | undefined>;

/** Reads a template as it is now; its job's definition is stored with the schedule. */
export type ReadTemplate = (name: string) => Promise<{ job_name: string; params: string } | undefined>;

/** What checking a target needs besides the definitions. */
export type Around = {
  readonly readTemplate: ReadTemplate;
  readonly prepareEvent: Announce["prepareEvent"] | undefined;
};

export const readTemplateIn =
  (tx: Tx): ReadTemplate =>
  async (name) =>
    tx.get(sql`select job_name, params from daybook_job_template where tenant_id = ${tx.tenant} and name = ${name}`);

export async function checkTarget(
  name: string,
  options: TargetOptions,
  lookUp: LookUp,
  { readTemplate, prepareEvent }: Around,
): Promise<CheckedTarget> {
  const { job, template, event, params, queue, priority, tags } = options;
  const settings = {
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(tags === undefined ? {} : { tags }),
  };
  if ([job, template, event].filter((each) => each !== undefined).length !== 1) {
    throw invalid(`schedule "${name}" fires one thing: give "job", "template" or "event"`);
  }
  if (event === undefined && options.payload !== undefined) {
    throw invalid(`schedule "${name}" makes jobs, which have "params": "payload" is for "event"`);
  }
  if (event !== undefined) return checkEvent(name, options, prepareEvent);
  if (template !== undefined) {
    const now = await readTemplate(template);
    const known = now === undefined ? undefined : await lookUp(now.job_name);
    const given = now === undefined || known === undefined ? {} : mergeParams(JSON.parse(now.params), params);
    const definition = known ?? defineJob(template, { run: () => undefined });
    const stored: StoredTarget = {
      prepared: withoutCause(await prepareJob(definition, given, settings)),
      overrides: params ?? null,
      settings,
      ...(known === undefined ? { unknown: true } : {}),
    };
    const warning = now === undefined ? null : warningOf(now.job_name, known);
    const job = toJson(stored, { what: "schedule" });
    return { target: "template", target_name: template, job, unknown: false, warning };
  }
  const jobName = typeof job === "string" ? job : (job as AnyJob).name;
  const known = typeof job === "string" ? await lookUp(job) : (job as AnyJob);
  const definition = known ?? defineJob(jobName, { run: () => undefined });
  const prepared = withoutCause(await prepareJob(definition, params, settings));
  const unknown = known === undefined;
  const stored: StoredTarget = { prepared, overrides: null, settings, ...(unknown ? { unknown } : {}) };
  const warning = warningOf(jobName, known);
  return { target: "job", target_name: jobName, job: toJson(stored, { what: "schedule" }), unknown, warning };
}

function warningOf(jobName: string, known: AnyJob | undefined): string | null {
  return known === undefined ? neverHostedWarning(jobName) : (known.byName?.warning ?? null);
}

// An event has no job that could run, overlap or fail, so options about jobs are refused.
const ofJobs = ["params", "queue", "tags", "overlap", "pauseAfterFailures"] as const;

async function checkEvent(
  name: string,
  options: TargetOptions,
  prepareEvent: Around["prepareEvent"],
): Promise<CheckedTarget> {
  const idle = ofJobs.find((key) => (options as Record<string, unknown>)[key] !== undefined);
  if (idle !== undefined) {
    const instead = idle === "params" ? 'give "payload"' : "leave it out";
    throw invalid(`schedule "${name}" publishes an event, and "${idle}" is about jobs: ${instead}`);
  }
  if (prepareEvent === undefined) throw new DaybookError("internal", "this process has no room of events: report it");
  const settings = options.priority === undefined ? {} : { priority: options.priority };
  const { topic, payload, priority } = await prepareEvent(options.event, options.payload, settings);
  const stored: StoredEvent = { prepared: { params: payload, priority }, overrides: null, settings };
  return {
    target: "event",
    target_name: topic,
    job: toJson(stored, { what: "schedule" }),
    unknown: false,
    warning: null,
  };
}

function withoutCause({
  cause: _cause,
  traceparent: _trace,
  warning: _said,
  ...prepared
}: Prepared): StoredTarget["prepared"] {
  return prepared;
}

/** Whether two targets are the same, apart from the definitions of their jobs. */
export function isSameTarget(one: Stored, other: Stored): boolean {
  return ownWords(one) === ownWords(other);
}

type Stored = Pick<ScheduleRow, "target" | "target_name" | "job">;

function ownWords({ target, target_name: name, job }: Stored): string {
  const { prepared, overrides, settings } = JSON.parse(job) as StoredTarget;
  return JSON.stringify([target, name, target === "template" ? null : prepared.params, overrides, settings]);
}

/** What is fired: a job to enqueue, or an event to publish. */
export type Target = { readonly prepared: Prepared } | { readonly said: ToSay };

/** What to fire now, or why nothing can be fired. A template is read at each fire. */
export async function targetOf(tx: Tx, row: ScheduleRow): Promise<Target | { readonly refused: string }> {
  const stored = JSON.parse(row.job) as StoredTarget;
  const { overrides, settings } = stored;
  if (row.target === "event") {
    const { params: payload, priority } = stored.prepared;
    return { said: { topic: row.target_name, payload, priority } };
  }
  if (row.target === "job") {
    const prepared = await withSettings(tx, stored, row.target_name);
    return { prepared: { ...prepared, ...noCause } };
  }
  const read: ReadRows = (statement) => tx.all(statement);
  const template = await readTemplate(read, row.tenant_id, row.target_name, sql`${forShare}`);
  if (template === undefined) return { refused: `there is no template "${row.target_name}"` };
  if (template.archivedAt !== null) return { refused: `template "${row.target_name}" is archived` };
  const merged = mergeParams(template.params, overrides);
  const prepared = await withSettings(tx, stored, template.job);
  return {
    prepared: {
      ...prepared,
      name: template.job,
      params: toJson(merged, { what: "params" }),
      queue: settings.queue ?? template.queue ?? prepared.queue,
      priority: settings.priority ?? template.priority ?? prepared.priority,
      attempts: template.attempts ?? prepared.attempts,
      backoff: template.backoff === null ? prepared.backoff : toJson(template.backoff, { what: "backoff" }),
      timeout_ms: template.timeoutMs ?? prepared.timeout_ms,
      losses_max: template.losses ?? prepared.losses_max,
      template_id: template.id,
      ...noCause,
    },
  };
}

// A program may host the job only after the schedule was made. From then on its settings apply.
async function withSettings(tx: Tx, stored: StoredTarget, jobName: string): Promise<StoredTarget["prepared"]> {
  const { prepared, settings, unknown = false } = stored;
  const found = unknown ? await findDefinition((statement) => tx.all(statement), jobName) : undefined;
  if (found === undefined) return prepared;
  const { queue, priority, attempts, backoff, timeoutMs: timeout_ms, losses: losses_max, owner } = found;
  return {
    ...prepared,
    queue: settings.queue ?? queue,
    priority: settings.priority ?? priority,
    attempts,
    timeout_ms,
    losses_max,
    backoff: backoff === undefined ? null : toJson(backoff, { what: "backoff" }),
    ...limitsOf(found, JSON.parse(prepared.params)),
    ...owner,
  };
}

/** Refuses a missing or archived template when the schedule is made. */
export async function refuseMissingTemplate(tx: Tx, row: Pick<ScheduleRow, "target" | "target_name">): Promise<void> {
  if (row.target !== "template") return;
  const found = await tx.get<{ archived_at: number | null }>(
    sql`select archived_at from daybook_job_template where tenant_id = ${tx.tenant} and name = ${row.target_name} ${forShare}`,
  );
  if (found !== undefined && found.archived_at === null) return;
  throw new DaybookError(
    found === undefined ? "not_found" : "conflict",
    found === undefined
      ? `there is no template "${row.target_name}": create it first`
      : `template "${row.target_name}" is archived and makes no new jobs: restore it, or use another`,
    { details: { template: row.target_name } },
  );
}
