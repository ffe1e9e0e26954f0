import { durationMs, formatDuration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { timeMs } from "../../core/time.ts";
import { parseCron } from "./cron.ts";
import { type ClockChanges, nextSlot } from "./next-slot.ts";
import type { StoredTiming } from "./definition.ts";
import { dailyPlan } from "./pattern-plan.ts";
import type { Plan } from "./plan.ts";
import { type Slot, slotAt } from "./slot.ts";
import { cronWords } from "./words.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** A timing without its start and end. */
export type Ticks = {
  readonly expression: string;
  readonly words: string;
  next(after: number): Slot | null;
};

export function createTicks(stored: StoredTiming): Ticks {
  const zone = zoneOf(stored.zone);
  switch (stored.kind) {
    case "cron":
      return cronTicks(stored.expression, zone, stored);
    case "daily":
      return dailyTicks(stored.expression, zone, stored);
    case "every":
      return everyTicks(stored.expression, stored.anchor ?? 0, zone);
    case "once":
      return onceTicks(stored.expression, zone);
  }
}

function cronTicks(given: string, zone: Zone, changes: ClockChanges): Ticks {
  const { expression, fields, plan } = parseCron(given);
  return planTicks({ expression, words: cronWords(expression, fields) }, plan, zone, changes);
}

function dailyTicks(given: string, zone: Zone, changes: ClockChanges): Ticks {
  const parts = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(given);
  if (parts === null) {
    throw invalid(
      `daily is ${quote(given)}; it must be a time of day from "00:00" to "23:59", or with seconds such as "07:00:30"`,
    );
  }
  const [hour, minute, second] = [Number(parts[1]), Number(parts[2]), Number(parts[3] ?? 0)];
  const expression = second === 0 ? given.slice(0, 5) : given;
  const plan = dailyPlan(hour * 3600 + minute * 60 + second);
  return planTicks({ expression, words: `every day at ${expression}` }, plan, zone, changes);
}

type Named = Pick<Ticks, "expression" | "words">;

function planTicks(named: Named, plan: Plan, zone: Zone, changes: ClockChanges): Ticks {
  return { ...named, next: (after) => nextSlot(plan, zone, changes, after) };
}

/** Counted from the anchor and not from the last slot, so that nothing adds up. Clock changes do not matter. */
function everyTicks(every: string, anchor: number, zone: Zone): Ticks {
  const ms = durationMs(every, "every", { min: limits.everyMsMin });
  return {
    expression: every,
    words: `every ${formatDuration(ms)}`,
    next: (after) => slotAt(zone, anchor + (Math.floor((after - anchor) / ms) + 1) * ms),
  };
}

function onceTicks(given: string, zone: Zone): Ticks {
  const at = timeMs(given, "at");
  const slot = slotAt(zone, at);
  return { expression: given, words: `once at ${slot.local}`, next: (after) => (after < at ? slot : null) };
}
