// One thing that an instance registered in its setup: what it listens to, or when it acts, and with which function.
import type { LiveDefinition } from "../events/live/define.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { ScheduleOptions } from "../schedules/options.ts";
import type { CallSite } from "./source/call-site.ts";

export type RegistrationKind = "listener" | "schedule" | "job";

/** What it is set to, as it is kept and compared: plain values under the names that people gave them. */
export type Settings = Readonly<Record<string, string | number | boolean | null>>;

export type Registration = {
  readonly name: string;
  readonly handlerMethod: string;
  readonly site: CallSite;
  readonly settings: Settings;
  /** Sorted JSON of what the handler of a schedule is given. */
  readonly args: string;
  readonly kwargs: string;
  readonly does: Does;
};

/** What becomes of it once its setup is complete. */
export type Does =
  | { readonly kind: "listener"; readonly live: LiveDefinition }
  | { readonly kind: "schedule"; readonly job: AnyJob; readonly schedule: ScheduleOptions; readonly trigger: Trigger }
  | { readonly kind: "job"; readonly job: AnyJob };

export type Trigger = {
  /** Null for one that fires once. */
  readonly type: "cron" | "interval" | null;
  readonly value: string;
  readonly repeat: boolean;
};

/** The function's own name. */
export function methodOf(handler: { readonly name: string }): string {
  // A method of a class that was bound keeps its name behind this word.
  const name = handler.name.replace(/^(bound )+/, "");
  return name === "" ? "<anonymous>" : name;
}

/** What differs between two, in words: `debounce 1000 → 5000`. */
export function differences(one: Registration, other: Registration): string[] {
  const [before, after] = [facts(one), facts(other)];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((key) => shown(before[key]) !== shown(after[key]))
    .map((key) => `${key} ${shown(before[key])} → ${shown(after[key])}`);
}

function facts({ does, settings, handlerMethod: handler, args, kwargs }: Registration): Settings {
  return { kind: does.kind, ...settings, handler, args, kwargs };
}

function shown(value: Settings[string] | undefined): string {
  return value === undefined || value === null ? "none" : String(value);
}
