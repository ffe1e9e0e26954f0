// What an instance registers in its setup: a listener, a schedule or a job, with its function.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { LiveDefinition } from "../events/live/define.ts";
import type { ScheduleOptions } from "../schedules/options.ts";
import { type CallSite, locationOf } from "./source.ts";

export type RegistrationKind = "listener" | "schedule" | "job";

/** The options of a registration as plain values, for keeping and comparing. */
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

/** What it becomes once its setup is complete. */
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
  // A bound method has this word before its name.
  const name = handler.name.replace(/^(bound )+/, "");
  return name === "" ? "<anonymous>" : name;
}

/** How two registrations differ, in words: `debounce 1000 → 5000`. */
function differences(one: Registration, other: Registration): string[] {
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

/** What identifies a registration across restarts: its tenant, app, instance and name. Every setup refreshes the rest. */
export type InstanceIdentity = { readonly tenant: string; readonly app: string; readonly instance: number };
export type Identity = InstanceIdentity & { readonly name: string };

/** The name under which the rooms below know it. Neither a tenant nor an app key has a slash, so two identities never share a
 *  name. It includes the tenant because a job definition serves every tenant, and this one must not. */
export function nameOf({ name, ...instance }: Identity): string {
  return checkName(`${beginOf(instance)}${name}`, "the whole name of the registration");
}

/** The prefix of all names of an instance. */
export function beginOf({ tenant, app, instance }: InstanceIdentity): string {
  return `${tenant}/${app}/${instance}/`;
}

/** What to do when the instance has the name already: refuse (default), keep the earlier one if its settings are the same, or
 *  replace it. */
export type IfExists = "error" | "skip" | "replace";

/** The registrations of one setup, by name. History follows a name, so an instance uses each name once. */
export type Roster = {
  add(registration: Registration, ifExists: IfExists): Registration;
  readonly all: readonly Registration[];
};

export function createRoster(what: string): Roster {
  const known = new Map<string, Registration>();
  return {
    get all() {
      return [...known.values()];
    },
    add(registration, ifExists) {
      const { name } = registration;
      const before = known.get(name);
      if (before !== undefined && ifExists === "error") throw taken(what, before, registration);
      if (before !== undefined && ifExists === "skip") return keep(what, before, registration);
      if (before === undefined && known.size >= limits.appRegistrationsMax) {
        throw invalid(`${what} has ${known.size} registrations, the most that are allowed: is it a loop without end?`);
      }
      known.set(name, registration);
      return registration;
    },
  };
}

function taken(what: string, before: Registration, again: Registration): Error {
  const places = { first: locationOf(before.site), second: locationOf(again.site) };
  return invalid(
    `${what} registers ${quote(again.name)} twice: at ${places.first} and at ${places.second}. Give one of them ` +
      `another name, or say ifExists: "skip" or "replace"`,
    { details: { name: again.name, ...places } },
  );
}

function keep(what: string, before: Registration, again: Registration): Registration {
  const changed = differences(before, again);
  if (changed.length === 0) return before;
  const places = { first: locationOf(before.site), second: locationOf(again.site) };
  throw invalid(
    `${what} registers ${quote(again.name)} at ${places.second} with ifExists "skip", and other settings than at ` +
      `${places.first}: ${changed.join("; ")}. Make them the same, or say "replace"`,
    { details: { name: again.name, ...places, differences: changed } },
  );
}

export function checkIfExists(value: unknown): IfExists {
  if (value === undefined) return "error";
  if (value === "error" || value === "skip" || value === "replace") return value;
  throw invalid(`ifExists ${quote(value)} is not known: "error", "skip" or "replace"`);
}
