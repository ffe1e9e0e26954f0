// What a schedule fires: a job, a template or an event. The definition's settings (attempts, limits …) are stored when the schedule
// is made, so that a process that does not know the definition can fire it too.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { DaybookError, invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { forShare } from "../storage/word.ts";
import { defineJob, limitsOf, prepareJob } from "../jobs/define.ts";
import type { AnyJob, Job, EnqueueOptions, Prepared } from "../jobs/define.ts";
import { findDefinition, neverHostedWarning, knownJob, type ReadRows } from "../jobs/definition.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Announce, ToSay } from "../jobs/kind.ts";
import { mergeParams, readTemplate, definedOnly } from "../jobs/template/template.ts";
import { readBookZone } from "./book-zone.ts";
import type { ScheduleRow } from "./schedule.ts";

export type TargetOptions<Input = unknown> = Pick<EnqueueOptions, "queue" | "priority" | "tags"> &
  (
    | (NoEvent & { readonly job: Job<Input> | string; readonly template?: undefined } & Needed<"params", Input>)
    // Without a definition it is unknown; written as that, it would make any params of a definition fit.
    | (NoEvent & { readonly template: string; readonly job?: undefined; readonly params?: NoInfer<Input> })
    | (NoJob & { readonly event: SaidEvent<Input> | string } & Needed<"payload", Input>)
  );

/** The params or the payload. They may be left out where `{}` or nothing would do, as in `enqueue` and `publish`. */
type Needed<Key extends string, Input> =
  Record<never, never> extends Input
    ? { readonly [key in Key]?: NoInfer<Input> }
    : undefined extends Input
      ? { readonly [key in Key]?: NoInfer<Input> }
      : { readonly [key in Key]: NoInfer<Input> };

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

export type CheckedTarget = Pick<ScheduleRow, "target" | "target_name" | "job"> & {
  /** No program has hosted its job yet. That is allowed, with a warning. */
  readonly unknown: boolean;
  readonly warning: string | null;
};

/** Reads a template as it is now; its job's definition is stored with the schedule. */
type ReadTemplate = (name: string) => Promise<{ job_name: string; params: string } | undefined>;

/** What checking a target needs: the definitions of jobs, in this process or in the book, templates and events. */
export type Around = {
  readonly lookUp: (name: string) => Awaitable<AnyJob | undefined>;
  readonly readTemplate: ReadTemplate;
  readonly prepareEvent: Announce["prepareEvent"] | undefined;
  /** The zone of a schedule that names none. */
  readonly zone: () => Awaitable<string>;
};

export function aroundOf(
  engine: Pick<Engine, "definitions" | "store" | "announce">,
  readTemplate: ReadTemplate,
  read?: ReadRows,
): Around {
  return {
    lookUp: (name) => knownJob(engine, name, read),
    readTemplate,
    prepareEvent: engine.announce?.prepareEvent,
    zone: () => readBookZone(read ?? ((statement) => engine.store.read(statement))),
  };
}

export async function readTemplateIn(tx: Tx, name: string): ReturnType<ReadTemplate> {
  return tx.get(
    sql`select job_name, params from daybook_job_template where tenant_id = ${tx.tenant} and name = ${name}`,
  );
}

export async function checkTarget(
  name: string,
  options: TargetOptions,
  { lookUp, readTemplate, prepareEvent }: Around,
): Promise<CheckedTarget> {
  const { job, template, event, params, queue, priority, tags } = options;
  const settings = definedOnly({ queue, priority, tags }) as StoredTarget["settings"];
  if ([job, template, event].filter((each) => each !== undefined).length !== 1) {
    throw invalid(`schedule "${name}" fires one thing: give "job", "template" or "event"`);
  }
  if (event === undefined && options.payload !== undefined) {
    throw invalid(`schedule "${name}" makes jobs, which have "params": "payload" is for "event"`);
  }
  if (event !== undefined) return checkEvent(name, options, prepareEvent);
  const from = template === undefined ? undefined : await readTemplate(template);
  const jobName = template !== undefined ? from?.job_name : typeof job === "string" ? job : (job as AnyJob).name;
  const known = typeof job === "object" ? (job as AnyJob) : jobName === undefined ? undefined : await lookUp(jobName);
  const target_name = template ?? jobName ?? "";
  const definition = known ?? defineJob(target_name, { run: () => undefined });
  const merged = from === undefined || known === undefined ? {} : mergeParams(JSON.parse(from.params), params);
  const stored: StoredTarget = {
    prepared: withoutCause(await prepareJob(definition, template === undefined ? params : merged, settings)),
    overrides: template === undefined ? null : (params ?? null),
    settings,
    ...(known === undefined ? { unknown: true } : {}),
  };
  return {
    target: template === undefined ? "job" : "template",
    target_name,
    job: toJson(stored, { what: "schedule" }),
    unknown: template === undefined && known === undefined,
    warning: jobName === undefined ? null : warningOf(jobName, known),
  };
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
  // The payload stands in the place of a job's params.
  const stored = { prepared: { params: payload, priority }, overrides: null, settings };
  const job = toJson(stored, { what: "schedule" });
  return { target: "event", target_name: topic, job, unknown: false, warning: null };
}

function withoutCause(given: Prepared): StoredTarget["prepared"] {
  const { cause: _cause, traceparent: _trace, warning: _said, ...prepared } = given;
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
