// How long things stay: one policy for the whole book. The book keeps what a program says of it, so that every process, and a shell,
// goes by the same.
import { isDeepStrictEqual } from "node:util";
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { checkJobRule, type JobRule } from "../jobs/retain/retain.ts";
import type { Store } from "../storage/store.ts";
import type { Log } from "./log.ts";
import { keepPolicy, readPolicy } from "../telemetry/retention/policy.ts";

/** An age, one rule, or several: what fits one of them leaves. */
type JobAge = Duration | JobRule | readonly JobRule[];

/** How long things stay; `false`: for ever. What is left out has its default. */
export type Retention = {
  /** Jobs that have ended, with their runs and all that is theirs; default 30 days. Jobs of calls and of apps' schedules have
   *  parts of their own. */
  readonly jobs?: JobAge | false;
  /** Calls that have ended, with their jobs; default 30 days. */
  readonly calls?: JobAge | false;
  /** Events that every listener has finished; default 30 days. */
  readonly events?: Duration | false;
  /** Runs of live listeners, and what apps' schedules did; default 7 days. */
  readonly runs?: Duration | false;
  /** Lines that live listeners logged; default 3 days. A job's lines go with the job. */
  readonly logs?: Duration | false;
  /** What was decided about the slots of schedules; default 90 days. */
  readonly decisions?: Duration | false;
  /** Counts of runs by minute, hour and day; default 400 days. */
  readonly rollups?: Duration | false;
  /** What was changed through a server, and by whom; default 90 days. It leaves by this alone: nobody removes it by hand. */
  readonly audit?: Duration | false;
  /** About how many bytes the runs and lines of live listeners may take; the oldest leave first. Default 1 GiB. */
  readonly sizeMax?: number | false;
};

/** What can be removed by hand. */
type ByHand = Omit<Retention, "audit">;

/** Of what is named, what is old leaves; `true`: as the book's policy says. When nothing is named, all of it as the policy says. */
export type RetainOptions = {
  readonly [Part in keyof ByHand]?: Exclude<ByHand[Part], false> | true;
} & {
  /** Removes it. Without, it is only said what would leave. */
  readonly apply?: boolean;
  /** Ends it after the slice that it is at. */
  readonly signal?: AbortSignal;
  /** Told after each slice of jobs how many jobs have left. */
  readonly progress?: (done: number, total: null) => void;
};

export type Policy = Required<ByHand>;

/** What holds of what nobody has said. */
export const retentionDefaults: Policy = {
  jobs: `${limits.jobDays}d`,
  calls: `${limits.callDays}d`,
  events: `${limits.eventDays}d`,
  runs: `${limits.runDays}d`,
  logs: `${limits.logDays}d`,
  decisions: `${limits.decisionDays}d`,
  rollups: `${limits.rollupDays}d`,
  sizeMax: limits.telemetryBytesMax,
};

export const retentionParts = Object.keys(retentionDefaults) as (keyof ByHand)[];
const allParts: readonly (keyof Retention)[] = [...retentionParts, "audit"];

/** `what` is what its caller calls it. */
export function checkRetention(given: unknown, what: string): Retention {
  refuseUnknown(given as object, allParts, what);
  for (const part of allParts) checkPart(part, (given as Retention)[part], `${what}.${part}`);
  return given as Retention;
}

function checkPart(part: keyof Retention, value: unknown, what: string): void {
  if (value === undefined || value === false) return;
  if (value === true || value === null)
    throw invalid(`${what} is ${quote(value)}: give an age such as "30d", or false to keep all`);
  if (part === "sizeMax") return void checkCount(value as number, what, 0, Number.MAX_SAFE_INTEGER);
  if (typeof value !== "object" || (part !== "jobs" && part !== "calls"))
    return void durationMs(value as Duration, what);
  if (Array.isArray(value) && value.length === 0) throw invalid(`${what} is an empty list: give false to keep all`);
  for (const rule of [value].flat()) checkJobRule(rule, what);
}

/** The book keeps what the last program that opened it with a policy has said. Another one that it kept before is told to `log`. */
export async function saveRetention(store: Store, retention: Retention, log: Pick<Log, "retention">): Promise<void> {
  const before = await keptPolicy(store);
  await keepPolicy(store, toJson(retention, { what: "retention" }));
  const changed = allParts.filter(
    (part) => before[part] !== undefined && !isDeepStrictEqual(before[part], retention[part]),
  );
  if (changed.length === 0) return;
  const parts = changed.map((part) => `${part} ${shown(before[part])}, now ${shown(retention[part] ?? "its default")}`);
  const message = `retention was another in this book, and is now as this program says (${parts.join("; ")})`;
  log.retention("info", { event: "retention.changed", before, now: retention }, message);
}

function shown(part: Retention[keyof Retention]): string {
  return part === false ? "for ever" : typeof part === "string" ? part : JSON.stringify(part);
}

/** What a retention goes by. A part that is not asked for is false. */
export async function policyFor(store: Store, { apply: _apply, ...named }: RetainOptions): Promise<Policy> {
  const { audit: _audit, ...said } = await keptPolicy(store);
  const kept: Policy = { ...retentionDefaults, ...said };
  const given = retentionParts.filter((part) => named[part] !== undefined);
  if (given.length === 0) return kept;
  const own = given.filter((part) => named[part] !== true);
  for (const part of own) {
    if ((named[part] as unknown) !== false) continue;
    throw invalid(`retain.${part} is false: give an age, or true for what the policy says, or leave it out`);
  }
  const asked = checkRetention(Object.fromEntries(own.map((part) => [part, named[part]])), "retain");
  const none = Object.fromEntries(retentionParts.map((part) => [part, false])) as Policy;
  return { ...none, ...Object.fromEntries(given.map((part) => [part, kept[part]])), ...asked };
}

/** How long the audit stays; false: for ever. */
export async function auditAge(store: Store): Promise<Duration | false> {
  return (await keptPolicy(store)).audit ?? `${limits.auditDays}d`;
}

async function keptPolicy(store: Store): Promise<Retention> {
  return JSON.parse(await readPolicy(store)) as Retention;
}

export function rulesOf(age: JobAge | false): readonly JobRule[] {
  if (age === false) return [];
  return typeof age === "object" ? [age].flat() : [{ olderThan: age }];
}
