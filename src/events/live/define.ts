// The definition of a live listener: what it hears, when it acts on it, and what it does.
import { checkCount } from "../../core/count.ts";
import { durationMs, formatDuration, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { checkWord, refuseUnknown } from "../../core/suggest.ts";
import type { RunOwner } from "../../telemetry/run.ts";
import { checkPriority } from "../../jobs/define.ts";
import { checkListener, type AnyEvent, type Heard } from "../define.ts";
import { where, type Predicate, type Where } from "./where.ts";

/** What happens to an event while a handler of the same listener is still running. */
export type LiveMode = "parallel" | "single" | "restart" | "queued";
const modes: readonly LiveMode[] = ["parallel", "single", "restart", "queued"];

/** `Context` is what the front door gives to a handler; this room only passes it on. */
export type LiveOptions<Payload, Context> = {
  readonly on: Heard | readonly Heard[];
  /** In this process only, without a job: events that come while it is not attached are not made up for. */
  readonly live: true;
  /** Acts only on events for which this holds; a list means all of them. */
  readonly where?: Where<Payload> | readonly Where<Payload>[];
  /** Acts only once `where` has held for this long; an event of the same topic for which it does not hold cancels that. */
  readonly for?: Duration;
  /** Waits until no event has come for this long, then acts on the last one. */
  readonly debounce?: Duration;
  /** Acts at once, then ignores events for this long. */
  readonly throttle?: Duration;
  /** Acts once and is done. */
  readonly once?: boolean;
  /** When attached, also acts on the last known event of each of its topics. */
  readonly immediate?: boolean;
  /** −1000 … 1000; among the listeners of one event, the higher begin first. */
  readonly priority?: number;
  /** How long one run may take; default without limit. */
  readonly timeout?: Duration;
  /** While a run goes on: `parallel` (default) begins another, `single` drops the event, `restart` cancels the run, `queued` waits. */
  readonly mode?: LiveMode;
  /** `parallel`: how many may run at once; default 100. Events beyond that are dropped and counted. */
  readonly concurrency?: number;
  /** `queued`: how many events may wait; default 1000. Events beyond that are dropped and counted. */
  readonly backlog?: number;
  /** `"all"`: hears the events of every tenant, each separately. Default: those of the book that uses it. */
  readonly tenants?: "all";
  readonly run: (payload: Payload, context: Context) => unknown;
};

export type LiveDefinition = Required<
  Pick<LiveOptions<never, never>, "once" | "immediate" | "priority" | "mode" | "concurrency" | "backlog">
> & {
  readonly kind: "live";
  readonly name: string;
  readonly topics: readonly string[];
  /** The event definitions among what it hears. */
  readonly events: readonly AnyEvent[];
  readonly where: Predicate<never> | null;
  readonly forMs: number | null;
  readonly debounceMs: number | null;
  readonly throttleMs: number | null;
  readonly timeoutMs: number | null;
  readonly allTenants: boolean;
  /** The app registration that its runs belong to. */
  readonly owner?: RunOwner;
  readonly run: (payload: never, context: never) => unknown;
  /** In words: what it hears and when it acts. */
  describe(): string;
};

const known = [
  ...(["on", "live", "where", "for", "debounce", "throttle", "once", "immediate", "priority", "timeout"] as const),
  ...(["mode", "concurrency", "backlog", "tenants", "run"] as const),
] satisfies readonly (keyof LiveOptions<never, never>)[];

export function defineLive<Payload, Context>(name: string, options: LiveOptions<Payload, Context>): LiveDefinition {
  checkName(name, "listener name");
  const what = `listener "${name}"`;
  refuseUnknown(options, known, what);
  const shared = checkListener(what, options);
  const mode = checkWord(options.mode ?? "parallel", modes, `mode of ${what}`);
  refuseIdle(options, mode, what);
  const asked = options.where === undefined ? [] : [options.where].flat();
  const predicate = asked.length === 0 ? null : where.all(...asked);
  const span = (key: "for" | "debounce" | "throttle" | "timeout"): number | null => {
    const value = options[key];
    return value === undefined ? null : durationMs(value, `${key} of ${what}`, { min: 1 });
  };
  const spans = { forMs: span("for"), debounceMs: span("debounce"), throttleMs: span("throttle") };
  return {
    kind: "live",
    name,
    ...shared,
    where: predicate,
    ...spans,
    mode,
    once: options.once === true,
    immediate: options.immediate === true,
    priority: checkPriority(options.priority ?? 0),
    timeoutMs: span("timeout"),
    concurrency: checkCount(options.concurrency ?? limits.liveConcurrency, "concurrency", 1),
    backlog: checkCount(options.backlog ?? limits.liveBacklog, "backlog", 1),
    describe: () => describe(shared.topics, predicate, spans),
  };
}

// An option that would do nothing is a misunderstanding: refuse it here, before the hallway stays dark.
function refuseIdle(options: LiveOptions<never, never>, mode: LiveMode, what: string): void {
  if (options.concurrency !== undefined && mode !== "parallel") {
    throw invalid(`${what} has a concurrency, which is for mode "parallel"; its mode is "${mode}"`);
  }
  if (options.backlog !== undefined && mode !== "queued") {
    throw invalid(`${what} has a backlog, which is for mode "queued"; its mode is "${mode}"`);
  }
  if (options.for !== undefined && options.where === undefined) {
    throw invalid(`${what} has "for" but no "where": say what has to hold for that long`);
  }
  if (options.for !== undefined && options.debounce !== undefined) {
    throw invalid(`${what} has both "for" and "debounce"; "for" already waits, so remove one`);
  }
}

type Spans = Pick<LiveDefinition, "forMs" | "debounceMs" | "throttleMs">;

function describe(topics: readonly string[], predicate: Predicate<never> | null, spans: Spans): string {
  const words = [topics.join(", ")];
  if (predicate !== null) words.push(`where ${predicate.describe()}`);
  if (spans.forMs !== null) words.push(`for ${formatDuration(spans.forMs)}`);
  if (spans.debounceMs !== null) words.push(`after ${formatDuration(spans.debounceMs)} of quiet`);
  if (spans.throttleMs !== null) words.push(`at most once in ${formatDuration(spans.throttleMs)}`);
  return words.join(" ");
}
