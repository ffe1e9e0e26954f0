import { isDate } from "node:util/types";
import { invalid } from "./error.ts";
import { quote } from "./quote.ts";

/** A moment as callers give it. Temporal.Instant and Temporal.ZonedDateTime fit by their shape. */
export type TimeInput = number | string | Date | { epochMilliseconds: number };

// What a Date can hold: 100 million days on either side of 1970.
const epochMsMax = 8.64e15;

const datePattern = /^(?:\d{4}|[+-]\d{6})-(?:0[1-9]|1[0-2])-(\d{2})$/;
const clockPattern = /^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?$/;
const zonePattern = /(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$/;

const example = 'use epoch milliseconds, a Date, or ISO 8601 text with a zone such as "2026-01-31T09:30:00+01:00"';

/** Whole milliseconds since 1970. Finer fractions are cut off. */
export function timeMs(value: TimeInput, what: string): number {
  const ms = typeof value === "string" ? textMs(value, what) : valueMs(value, what);
  if (ms === undefined) throw invalid(`${what} is ${quote(value)}, which is not a time; ${example}`);
  if (!Number.isInteger(ms) || Math.abs(ms) > epochMsMax) {
    throw invalid(`${what} is ${quote(value)}, which is not a whole number of milliseconds between ±${epochMsMax}`);
  }
  return ms === 0 ? 0 : ms;
}

// In milliseconds this is March 1973: no job is due then, but today in Unix seconds is below it.
const msMin = 1e11;

/** A time at which something is to happen. Unix seconds, the commonest slip, would mean "at once", so they are refused. */
export function futureMs(value: TimeInput, what: string): number {
  const ms = timeMs(value, what);
  if (typeof value !== "number" || value <= 0 || value >= msMin) return ms;
  const meant = isoTime(value * 1000);
  throw invalid(
    `${what} is ${value}, which looks like seconds: give milliseconds (${value * 1000} for ${meant}) or a Date`,
  );
}

/** ISO 8601 in UTC with milliseconds, the one form in which we show times to machines. */
export function isoTime(ms: number): string {
  if (!Number.isFinite(ms) || Math.abs(ms) > epochMsMax) throw invalid(`${ms} is not a time in epoch milliseconds`);
  return new Date(ms).toISOString();
}

function valueMs(value: unknown, what: string): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "object" || value === null) return undefined;
  if (isDate(value)) {
    if (Number.isNaN(value.getTime())) throw invalid(`${what} is an invalid Date; check the text it was made from`);
    return value.getTime();
  }
  const ms: unknown = Reflect.get(value, "epochMilliseconds");
  return typeof ms === "number" ? ms : undefined;
}

function textMs(input: string, what: string): number | undefined {
  const text = input.toUpperCase();
  const [date = "", rest] = text.split("T", 2);
  const day = datePattern.exec(date)?.[1];
  if (day === undefined) return undefined;
  const zone = rest === undefined ? undefined : zonePattern.exec(rest)?.[0];
  if (rest === undefined || zone === undefined) {
    // Taking it as local time would mean another moment on the next machine.
    const advice = 'append "Z" for UTC or an offset such as "+01:00"';
    throw invalid(`${what} is ${quote(input)}, which has no time of day with a zone; ${advice}`);
  }
  const clock = rest.slice(0, -zone.length);
  if (!clockPattern.test(clock)) return undefined;
  // Date.parse takes the 30th of February for the 2nd of March.
  if (new Date(Date.parse(`${date}T00:00Z`)).getUTCDate() !== Number(day)) return undefined;
  const offset = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const ms = Date.parse(`${date}T${clock}${offset}`);
  return Number.isNaN(ms) ? undefined : ms;
}
