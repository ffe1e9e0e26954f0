// What a program lists in `use`. Anything else there would be passed over in silence, and its jobs would wait for ever.
import type { AnyApp } from "../apps/define.ts";
import { callJobName } from "../calls/call.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { isEvent, type AnyEvent, type AnyListener } from "../events/define.ts";
import { listenerJob } from "../events/listen.ts";
import type { LiveDefinition } from "../events/live/define.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { AnyRecordType } from "../records/define/definition.ts";
import type { AnySchedule } from "../schedules/options.ts";

/** What a program may list in `use`. */
export type Definition = AnyJob | AnySchedule | AnyEvent | AnyListener | LiveDefinition | AnyRecordType | AnyApp;

export function checkUse(use: unknown): readonly Definition[] {
  if (Array.isArray(use)) return (use as readonly unknown[]).map(checkDefinition);
  const single = isDefinition(use) ? "one definition, without its list" : quote(use);
  throw invalid(`"use" is ${single}: give a list of definitions, such as [sendReceipt]`);
}

function checkDefinition(each: unknown, index: number): Definition {
  if (isDefinition(each)) return each;
  const what = Array.isArray(each) ? "a list" : quote(each);
  throw invalid(`use[${index}] is ${what}, which is no definition: ${adviceFor(each, index)}`);
}

function adviceFor(each: unknown, index: number): string {
  // Of two files that import each other, one sees the exports of the other before they are there.
  if (each === undefined) return "look for a misspelt export, or for files that import each other";
  if (Array.isArray(each)) return `put what is in it into the list, as ...list does for use[${index}]`;
  if (typeof each === "object" && each !== null && Object.values(each).some(isDefinition)) {
    return "it holds some, as a whole module does; list them, as ...Object.values(it) does";
  }
  return "give what job(), schedule(), listener(), entity(), app() … made";
}

/** Known by its shape, because a user's file may use another copy of the package than this program. */
export function isDefinition(value: unknown): value is Definition {
  if (typeof value !== "object" || value === null) return false;
  const { kind, key, name, options, setup, topic, topics, indexes } = value as Record<string, unknown>;
  if (kind === "app") return typeof key === "string" && typeof setup === "function";
  if (kind === "event") return typeof topic === "string";
  if (kind === "listener" || kind === "live") return typeof name === "string" && Array.isArray(topics);
  if (kind === "entity" || kind === "relation") return typeof name === "string" && Array.isArray(indexes);
  return (kind === "job" || kind === "schedule") && typeof name === "string" && typeof options === "object";
}

/** What `use` lists, each kind by itself. */
export type Used = {
  /** Jobs, those that schedules fire and those that bring events to listeners among them, by name. */
  readonly definitions: Map<string, AnyJob>;
  readonly schedules: readonly AnySchedule[];
  readonly listeners: readonly AnyListener[];
  readonly live: readonly LiveDefinition[];
  /** Events, those that listeners hear and schedules publish among them, by topic. */
  readonly events: Map<string, AnyEvent>;
  /** Entities and relations, with the entities that relations connect, by name. */
  readonly recordTypes: Map<string, AnyRecordType>;
};

/** A name that stands for two definitions of one kind is refused. */
export function collect(use: readonly Definition[]): Used {
  const schedules = byName(ofKind(use, "schedule"), "schedules");
  // The live listeners share their names with the durable ones.
  const heard = byName([...ofKind(use, "listener"), ...ofKind(use, "live")], "listeners");
  const listeners = ofKind(heard, "listener");
  const records = [...ofKind(use, "entity"), ...ofKind(use, "relation")];
  const connected = records.flatMap((each) => (each.kind === "relation" ? [each, each.from, each.to] : [each]));
  return {
    definitions: collectJobs(use, listeners),
    schedules,
    listeners,
    live: ofKind(heard, "live"),
    events: collectEvents([
      ...ofKind(use, "event"),
      ...heard.flatMap(({ events }) => events),
      ...publishedBy(schedules),
    ]),
    recordTypes: toMap(byName<AnyRecordType>(connected, "records")),
  };
}

type Named = { readonly name: string };

function ofKind<Each extends { readonly kind: string }, Kind extends Each["kind"]>(
  all: readonly Each[],
  kind: Kind,
): Extract<Each, { readonly kind: Kind }>[] {
  return all.filter((each): each is Extract<Each, { readonly kind: Kind }> => each.kind === kind);
}

function byName<Each extends Named>(all: readonly Each[], what: string): Each[] {
  const found = new Map<string, Each>();
  for (const each of all) {
    const known = found.get(each.name);
    if (known !== undefined && known !== each) {
      throw invalid(`two ${what} in "use" are named "${each.name}": rename one`);
    }
    found.set(each.name, each);
  }
  return [...found.values()];
}

function toMap<Each extends Named>(all: readonly Each[]): Map<string, Each> {
  return new Map(all.map((each) => [each.name, each]));
}

function collectJobs(use: readonly Definition[], listeners: readonly AnyListener[]): Map<string, AnyJob> {
  const found = toMap(byName(use.flatMap(reached), "jobs"));
  if (found.has(callJobName)) throw invalid(`"${callJobName}" is the job that makes calls: rename yours`);
  for (const each of listeners.map(listenerJob)) {
    if (found.has(each.name)) throw invalid(`"${each.name}" is the name of a listener's deliveries: rename the job`);
    found.set(each.name, each);
  }
  return found;
}

/** A job, or the job that a schedule fires, if it is given by its definition. */
function reached(definition: Definition): readonly AnyJob[] {
  if (definition.kind === "job") return [definition];
  if (definition.kind !== "schedule") return [];
  const { job } = definition.options;
  return job === undefined || typeof job === "string" ? [] : [job];
}

function publishedBy(schedules: readonly AnySchedule[]): readonly AnyEvent[] {
  return schedules.flatMap(({ options: { event } }) => (isEvent(event) ? event : []));
}

function collectEvents(all: readonly AnyEvent[]): Map<string, AnyEvent> {
  const found = new Map<string, AnyEvent>();
  for (const each of all) {
    const known = found.get(each.topic);
    if (known !== undefined && known !== each) {
      throw invalid(`two events in "use" have the topic "${each.topic}": keep one definition`);
    }
    found.set(each.topic, each);
  }
  return found;
}
