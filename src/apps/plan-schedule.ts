// app.daily(), every(), cron(), in() and once(): a schedule of the book that fires a job whose handler is the instance's
// own function. What the handler is given stays in memory, so it may be anything; the book keeps what can be read of it.
import { durationMs, type Duration } from "../core/duration.ts";
import { checkTiming, type ScheduleOptions } from "../schedules/options.ts";
import { jobSettings, watchedJob } from "./plan-job.ts";
import { methodOf, type Registration, type Settings, type Trigger } from "./registration.ts";
import { safeJson } from "./safe-json.ts";
import type { Asked, SetupParts } from "./setup.ts";

export type TimingWord = "daily" | "every" | "cron" | "in" | "at";

const jobWords = ["attempts", "backoff", "timeout", "losses", "queue", "priority"];
const scheduleWords = ["missed", "maxLateness", "concurrency", "jitter", "maxFires", "pauseAfterFailures", "tags"];
const timingWords = ["anchor", "zone", "gap", "overlap", "start", "end"];

export function planSchedule(
  parts: SetupParts,
  { name, handler, options }: Asked,
  word: TimingWord,
  when: unknown,
): Omit<Registration, "site"> {
  const { onError, params = {}, ...rest } = options;
  const [ofJob, others] = split(rest, jobWords);
  const timing = { [word]: when, ...split(others, timingWords)[0] };
  const checked = checkTiming(name, timing);
  // A late automation is often worse than none, so it is tried once unless more is asked for.
  const job = watchedJob(parts, {
    ...{ name, onError, options: { attempts: 1, ...ofJob } },
    handler: (_none: never, context: never) =>
      (handler as (given: unknown, context: unknown) => unknown)(params, context),
  });
  const isList = Array.isArray(params);
  return {
    ...{ name, handlerMethod: methodOf(handler) },
    args: isList ? safeJson(params) : "[]",
    kwargs: isList ? "{}" : safeJson(params),
    settings: { ...triggerSettings(word, when, others), zone: checked.zone, ...policies(others), ...jobSettings(job) },
    does: {
      kind: "schedule",
      job,
      schedule: { ...others, [word]: when, job, params: {} } as unknown as ScheduleOptions,
      trigger: triggerOf(word, when, checked.expression),
    },
  };
}

function split(
  options: Readonly<Record<string, unknown>>,
  words: readonly string[],
): [Record<string, unknown>, Record<string, unknown>] {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  const isOne = ([key]: [string, unknown]): boolean => words.includes(key);
  return [Object.fromEntries(entries.filter(isOne)), Object.fromEntries(entries.filter((entry) => !isOne(entry)))];
}

function triggerSettings(word: TimingWord, when: unknown, others: Readonly<Record<string, unknown>>): Settings {
  const rest = Object.fromEntries(
    timingWords.filter((key) => key !== "zone" && key in others).map((key) => [key, shown(others[key])]),
  );
  return { [word === "at" ? "once" : word]: shown(when), ...rest };
}

function policies(others: Readonly<Record<string, unknown>>): Settings {
  return Object.fromEntries(
    Object.entries(others)
      .filter(([key]) => scheduleWords.includes(key))
      .map(([key, value]) => [key === "concurrency" ? "overlapping" : key, shown(value)]),
  );
}

function shown(value: unknown): string | number {
  return typeof value === "string" || typeof value === "number" ? value : safeJson(value);
}

// In the words of the seed (docs/origins.md), so that its view needs no arithmetic; ours are in the settings.
function triggerOf(word: TimingWord, when: unknown, expression: string): Trigger {
  if (word === "cron") return { type: "cron", value: expression, repeat: true };
  if (word === "daily") return { type: "cron", value: dailyCron(expression), repeat: true };
  if (word === "every") {
    const seconds = durationMs(when as Duration, "every") / 1000;
    return { type: "interval", value: Number.isInteger(seconds) ? `${seconds}.0` : String(seconds), repeat: true };
  }
  // Counted from when it is written, which is not known yet.
  return { type: null, value: word === "in" ? `in ${shown(when)}` : expression, repeat: false };
}

function dailyCron(time: string): string {
  const [hour = 0, minute = 0, second = 0] = time.split(":").map(Number);
  return second === 0 ? `${minute} ${hour} * * *` : `${second} ${minute} ${hour} * * *`;
}
