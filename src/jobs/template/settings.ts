// What a template may say about the jobs that are made from it, checked and as its row holds it.
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { toJson } from "../../core/json.ts";
import { checkName } from "../../core/name.ts";
import { checkPriority } from "../define.ts";
import { checkBackoff, type Backoff } from "../retry.ts";
import type { TemplateRow } from "./template.ts";

/** What is left out, the definition of the job decides. */
export type TemplateSettings = {
  readonly queue?: string;
  readonly priority?: number;
  readonly attempts?: number;
  readonly backoff?: Backoff;
  readonly timeout?: Duration;
  readonly losses?: number;
};

/** `params` are defaults: a job gets them with the overrides of `enqueueFrom` laid over, property by property. */
export type TemplateOptions<Input = unknown> = TemplateSettings & { readonly params?: Partial<Input> };

/** What is left out stays; null gives a setting back to the definition. `params` replaces all the defaults there were. */
export type TemplateChanges<Input = unknown> = {
  readonly [Setting in keyof TemplateSettings]?: TemplateSettings[Setting] | null;
} & { readonly params?: Partial<Input> };

export const settingNames = ["queue", "priority", "attempts", "backoff", "timeout", "losses"] as const;

type SettingColumns = Pick<TemplateRow, "queue" | "priority" | "attempts" | "backoff" | "timeout_ms" | "losses">;

export function settingColumns(
  { queue, priority, attempts, backoff, timeout, losses }: TemplateChanges,
  before: SettingColumns,
): SettingColumns {
  return {
    queue: changed(queue, before.queue, (value) => checkName(value, "queue")),
    priority: changed(priority, before.priority, checkPriority),
    attempts: changed(attempts, before.attempts, (value) => checkCount(value, "attempts", 1)),
    backoff: changed(backoff, before.backoff, backoffJson),
    timeout_ms: changed(timeout, before.timeout_ms, (value) => durationMs(value, "timeout", { min: 1 })),
    losses: changed(losses, before.losses, (value) => checkCount(value, "losses", 0)),
  };
}

export const noSettings: SettingColumns = {
  ...{ queue: null, priority: null, attempts: null, backoff: null, timeout_ms: null, losses: null },
};

function changed<T, Kept>(to: T | null | undefined, from: Kept | null, keep: (value: T) => Kept): Kept | null {
  if (to === undefined) return from;
  return to === null ? null : keep(to);
}

function backoffJson(backoff: Backoff): string {
  checkBackoff(backoff);
  return toJson(backoff, { what: "backoff" });
}
