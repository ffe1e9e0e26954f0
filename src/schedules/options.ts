// What a schedule is made of, checked. The same options serve definitions in code and schedules made at run time.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { FireConcurrency, Missed, ScheduleRow } from "./schedule.ts";
import { checkTarget, type CheckedTarget, type Around, type LookUp, type TargetOptions } from "./target.ts";
import { createTiming, type Timing, type TimingInput, type TimingOptions } from "./timing/timing.ts";

export type Policies = {
  /** What to make of slots that nobody was there for: run the latest of them (default), all of them, or none. */
  readonly missed?: Missed;
  /** How late a missed slot may still be run; default one period (at most a day) for `latest`, a day for `all`. */
  readonly maxLateness?: Duration;
  /** When the job of the slot before has not ended: leave this one out (default), let it wait, cancel the other, or run
   *  both. Not for events, which are said and over. */
  readonly concurrency?: FireConcurrency;
  /** Fires up to so much later, by an amount that is this schedule's own, so that many do not fire at once. */
  readonly jitter?: Duration;
  readonly maxFires?: number;
  /** Pauses the schedule after so many jobs in a row that failed for good. */
  readonly pauseAfterFailures?: number;
};

/** When, what and how. */
export type ScheduleOptions<Input = unknown> = Alone<TimingInput> & TimingOptions & Policies & TargetOptions<Input>;

/** One way to say when, and none of the others. */
type Alone<When> = When extends unknown
  ? When & { readonly [other in Exclude<(typeof timingKeys)[number], keyof When>]?: undefined }
  : never;

export type CheckedSchedule = CheckedTarget &
  Pick<
    ScheduleRow,
    | ("kind" | "expression" | "zone" | "gap" | "overlap" | "starts_at" | "ends_at" | "anchor_at")
    | ("missed" | "max_lateness_ms" | "concurrency" | "jitter_ms" | "max_fires" | "pause_after")
  > & {
    readonly timing: Timing;
    /** Counted from the moment at which the schedule is written; until then the timing counts from 1970. */
    readonly inMs: number | null;
  };

const timingKeys = ["cron", "every", "at", "in", "daily"] as const;
const known = [
  ...timingKeys,
  ...(["anchor", "zone", "gap", "overlap", "start", "end"] as const),
  ...(["missed", "maxLateness", "concurrency", "jitter", "maxFires", "pauseAfterFailures"] as const),
  ...(["job", "template", "params", "queue", "priority", "tags", "event", "payload"] as const),
];

export async function checkSchedule(
  name: string,
  options: ScheduleOptions,
  lookUp: LookUp,
  around: Around,
): Promise<CheckedSchedule> {
  checkName(name, "schedule name");
  const { timing, jitter_ms } = checkWhen(name, options);
  const inMs = "in" in options && options.in !== undefined ? durationMs(options.in, "in") : null;
  const { kind, expression, zone, gap, overlap, start, end, anchor } = timing.stored;
  const {
    missed = "latest",
    concurrency = options.event === undefined ? "skip" : "allow",
    maxLateness,
    maxFires,
    pauseAfterFailures,
  } = options;
  oneOf("missed", missed, ["latest", "all", "skip"]);
  oneOf("concurrency", concurrency, ["skip", "queue", "cancel", "allow"]);
  return {
    ...{ kind, expression, zone, gap, overlap, starts_at: start, ends_at: end, anchor_at: anchor, timing, inMs },
    ...(await checkTarget(name, options, lookUp, around)),
    ...{ missed, concurrency },
    max_lateness_ms: maxLateness === undefined ? null : durationMs(maxLateness, "maxLateness"),
    jitter_ms,
    max_fires: maxFires === undefined ? null : checkCount(maxFires, "maxFires", 1),
    pause_after: pauseAfterFailures === undefined ? null : checkCount(pauseAfterFailures, "pauseAfterFailures", 1),
  };
}

export function checkWhen(
  name: string,
  options: object,
  now?: number,
): { readonly timing: Timing; readonly jitter_ms: number } {
  const { tenants: _tenants, ...rest } = options as { tenants?: unknown };
  refuseUnknown(rest, known, `schedule "${name}"`);
  const { jitter } = options as Pick<Policies, "jitter">;
  return {
    timing: checkTiming(name, options, now),
    jitter_ms: jitter === undefined ? 0 : durationMs(jitter, "jitter"),
  };
}

export function checkTiming(name: string, options: object, now?: number): Timing {
  const given = timingKeys.filter((key) => key in options && (options as Record<string, unknown>)[key] !== undefined);
  if (given.length !== 1) {
    const what = given.length === 0 ? "says not when" : `says when in ${given.length} ways (${given.join(", ")})`;
    throw invalid(`schedule "${name}" ${what}: give one of cron, every, at, in, daily`);
  }
  const {
    cron,
    every,
    at,
    in: after,
    daily,
    anchor,
    zone,
    gap,
    overlap,
    start,
    end,
  } = options as Record<string, never>;
  const timing = { cron, every, at, in: after, daily, anchor };
  const picked = Object.fromEntries(Object.entries(timing).filter(([, value]) => value !== undefined));
  const rest = Object.fromEntries(
    Object.entries({ zone, gap, overlap, start, end }).filter(([, value]) => value !== undefined),
  );
  return createTiming(picked as unknown as TimingInput, rest, now);
}

function oneOf(what: string, value: string, allowed: readonly string[]): void {
  if (allowed.includes(value)) return;
  throw invalid(`${what} ${JSON.stringify(value)} is not known: ${allowed.map((each) => `"${each}"`).join(", ")}`);
}
