// Makes the registrations of a setup: what `app.on`, `app.daily` and its like, and `app.job` register.
import { durationMs, formatDuration, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { advise } from "../core/retry.ts";
import type { RunOwner } from "../telemetry/run.ts";
import { defineJob, type AnyJob, type JobOptions } from "../jobs/define.ts";
import { defineLive, type LiveDefinition, type LiveOptions } from "../events/live/define.ts";
import { ask } from "../events/live/where.ts";
import { dayMs, periodAfter } from "../schedules/decide.ts";
import { checkTiming, type Policies, type ScheduleOptions } from "../schedules/options.ts";
import type { FireInfo } from "../schedules/schedule.ts";
import type { Timing } from "../schedules/timing/timing.ts";
import type { OnError } from "./define.ts";
import { watch, type Handler, type Running, type Watched } from "./handler.ts";
import { nameOf, methodOf, type Registration, type Settings, type Trigger } from "./registration.ts";
import { safeJson } from "./safe-json.ts";
import type { Asked, SetupParts } from "./setup.ts";

/** Makes the registration of `app.on()`: a live listener that belongs to an instance. */
export function planListener(
  parts: SetupParts,
  { name, handler, options }: Asked,
  on: unknown,
): Omit<Registration, "site"> {
  const { onError, ...rest } = options as { onError?: unknown };
  for (const fixed of ["on", "live", "tenants"]) {
    if (fixed in rest)
      throw invalid(`app.on ${JSON.stringify(name)} has the option "${fixed}", which is not its to say`);
  }
  // The bus itself waits for the runs of its listeners.
  const { watched, owner } = watchHandler({ ...parts, running: undefined }, { name, handler, onError, options: rest });
  const asked = { ...rest, on, live: true, run: watched.run } as LiveOptions<never, never>;
  const live = { ...defineLive(nameOf({ ...parts.identity, name }), asked), owner };
  return {
    ...plain(name, handler),
    settings: listenerSettings(live),
    does: { kind: "listener", live: { ...live, where: watchedWhere(live, watched) } },
  };
}

/** What all registrations say, and what one without params does. */
function plain(
  name: string,
  handler: Asked["handler"],
): Pick<Registration, "name" | "handlerMethod" | "args" | "kwargs"> {
  return { name, handlerMethod: methodOf(handler), args: "[]", kwargs: "{}" };
}

// A predicate that throws is an error of the listener, although its handler never began.
function watchedWhere({ where }: LiveDefinition, { failed }: Watched): LiveDefinition["where"] {
  if (where === null) return null;
  return {
    ...where,
    test(payload, seen) {
      try {
        return ask(where, payload, seen);
      } catch (error) {
        failed(error, null);
        throw error;
      }
    },
  };
}

function listenerSettings(live: LiveDefinition): Settings {
  const { forMs, debounceMs, throttleMs, timeoutMs, once, immediate, priority, mode, concurrency, backlog } = live;
  return {
    topic: live.topics.join(", "),
    where: live.where === null ? null : live.where.describe(),
    forMs,
    debounceMs,
    throttleMs,
    timeoutMs,
    once,
    immediate,
    priority,
    mode,
    concurrency: mode === "parallel" ? concurrency : null,
    backlog: mode === "queued" ? backlog : null,
  };
}

export type TimingWord = "daily" | "every" | "cron" | "in" | "at";

const jobWords = ["attempts", "backoff", "timeout", "losses", "queue", "priority"];
const scheduleWords = ["missed", "maxLateness", "overlap", "jitter", "maxFires", "pauseAfterFailures", "tags"];
const timingWords = ["anchor", "zone", "gap", "ambiguous", "start", "end"];

/** Makes the registration of `app.daily()`, `every()`, `cron()`, `in()` and `once()`: a schedule of the book that fires a job whose
 *  handler is the instance's own function. The handler's params stay in memory, so they may be anything; the book keeps the
 *  part that has JSON. */
export function planSchedule(
  parts: SetupParts,
  { name, handler, options }: Asked,
  word: TimingWord,
  when: unknown,
): Omit<Registration, "site"> {
  const { onError, params = {}, ...rest } = options;
  const [ofJob, others] = split(rest, jobWords);
  const { zone = parts.zone } = others;
  const timing = { ...split(others, timingWords)[0], [word]: when, zone };
  const checked = checkTiming(name, timing);
  const run = handler as (given: unknown, context: unknown) => unknown;
  const latest = latestStart(others, checked);
  const job = watchedJob(parts, {
    name,
    // Not an async function: a handler that awaits nothing has ended when it returns.
    handler: (_none: never, context: Fired) => {
      const lateMs = latest(context.job.schedule, parts.clock.now());
      if (lateMs === null) return run(params, context);
      return parts.wasInterrupted(context.job.id).then((is) => {
        if (is) throw tooLate(lateMs);
        return run(params, context);
      });
    },
    onError,
    // A late automation is often worse than none, so the job is tried once unless the options ask for more.
    options: { attempts: 1, ...ofJob },
  });
  return {
    ...plain(name, handler),
    [Array.isArray(params) ? "args" : "kwargs"]: safeJson(params),
    settings: {
      [word === "at" ? "once" : word]: shown(when),
      ...settingsOf(others, timingWords),
      zone: checked.zone,
      ...settingsOf(others, scheduleWords),
      ...jobSettings(job),
    },
    does: {
      kind: "schedule",
      job,
      schedule: { ...others, [word]: when, zone, job, params: {} } as unknown as ScheduleOptions,
      trigger: triggerOf(word, when, checked.expression),
    },
  };
}

type Fired = { readonly job: { readonly id: string; readonly schedule: FireInfo | null } };

/** How late a handler would begin, if that is too late for one that was interrupted; else null. What a person asked for is never too
 *  late. */
function latestStart(
  { missed, maxLateness }: Policies,
  timing: Timing,
): (slot: FireInfo | null, now: number) => number | null {
  const given = maxLateness === undefined ? null : durationMs(maxLateness, "maxLateness");
  return (slot, now) => {
    if (slot === null || slot.reason === "manual" || slot.reason === "backfilled") return null;
    // The slot's own time, and what its jitter adds to it.
    const lateMs = now - (slot.firedAt - slot.lateMs);
    const most = given ?? (missed === "all" ? dayMs : Math.min(periodAfter(timing, slot.nominalAt), dayMs));
    return lateMs > most ? lateMs : null;
  };
}

function tooLate(lateMs: number): Error {
  const late = `its slot was ${formatDuration(lateMs)} ago, which is more than maxLateness`;
  const error = new Error(`the run before it was interrupted, and ${late}: it does not run again`);
  error.name = "TooLate";
  return advise(error, { skip: true });
}

function split(
  options: Readonly<Record<string, unknown>>,
  words: readonly string[],
): [Record<string, unknown>, Record<string, unknown>] {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  const isOne = ([key]: [string, unknown]): boolean => words.includes(key);
  return [Object.fromEntries(entries.filter(isOne)), Object.fromEntries(entries.filter((entry) => !isOne(entry)))];
}

/** Those of the options that have one of these names, as plain values. */
function settingsOf(options: Readonly<Record<string, unknown>>, words: readonly string[]): Settings {
  return Object.fromEntries(Object.entries(split(options, words)[0]).map(([key, value]) => [key, shown(value)]));
}

function shown(value: unknown): string | number {
  return typeof value === "string" || typeof value === "number" ? value : safeJson(value);
}

// In the seed's words (docs/origins.md), so that its view needs no arithmetic; the settings keep ours.
function triggerOf(word: TimingWord, when: unknown, expression: string): Trigger {
  if (word === "cron") return { type: "cron", value: expression, repeat: true };
  if (word === "daily") return { type: "cron", value: dailyCron(expression), repeat: true };
  if (word === "every") {
    const seconds = durationMs(when as Duration, "every") / 1000;
    return { type: "interval", value: Number.isInteger(seconds) ? `${seconds}.0` : String(seconds), repeat: true };
  }
  // It counts from the time at which it is written, which is not known yet.
  return { type: null, value: word === "in" ? `in ${shown(when)}` : expression, repeat: false };
}

function dailyCron(time: string): string {
  const [hour = 0, minute = 0, second = 0] = time.split(":").map(Number);
  return second === 0 ? `${minute} ${hour} * * *` : `${second} ${minute} ${hour} * * *`;
}

/** Makes the registration of `app.job()`: a job that belongs to an instance, enqueued by the definition that this returns. */
export function planJob(parts: SetupParts, { name, handler, options }: Asked): Omit<Registration, "site"> {
  const { onError, ...rest } = options as { onError?: never };
  const job = watchedJob(parts, { name, handler, onError, options: rest });
  return { ...plain(name, handler), settings: jobSettings(job), does: { kind: "job", job } };
}

type Watching = {
  readonly name: string;
  readonly handler: Asked["handler"];
  readonly onError: unknown;
  readonly options: object;
};

/** The definition of a job under its whole name, with its handler watched. */
function watchedJob(parts: SetupParts, watching: Watching): AnyJob {
  const { watched, owner } = watchHandler(parts, watching);
  const whole = nameOf({ ...parts.identity, name: watching.name });
  const job = defineJob(whole, { ...(watching.options as JobOptions<never, unknown, never>), run: watched.run });
  return { ...job, owner };
}

/** Watches a handler: its errors go to the registration's `onError`, or else to the app's. */
function watchHandler(
  {
    app,
    identity,
    running,
    signal,
    strays,
    acted,
  }: Omit<SetupParts, "running"> & { readonly running: Running | undefined },
  { name, handler, onError, options }: Watching,
): { readonly watched: Watched; readonly owner: RunOwner } {
  if (onError !== undefined && typeof onError !== "function") {
    throw invalid(`onError of ${quote(name)} is ${quote(onError)}; it must be a function`);
  }
  const owner = { app: identity.app, instance: identity.instance, registration: name };
  const watched = watch(handler as unknown as Handler, {
    onError: (onError as OnError | undefined) ?? app.onError,
    place: owner,
    timeout: "timeout" in options && options.timeout !== undefined,
    running,
    stopping: signal,
    strays,
    acted: () => acted(name),
  });
  return { watched, owner };
}

function jobSettings({ queue, priority, attempts, timeoutMs, losses, concurrency, backoff }: AnyJob): Settings {
  const shownBackoff = backoff === undefined ? null : JSON.stringify(backoff);
  return { queue, priority, attempts, timeoutMs, losses, concurrency, backoff: shownBackoff };
}
