import { createRequire } from "node:module";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { remember } from "../../core/remember.ts";
import { nearest } from "../../core/suggest.ts";

const require = createRequire(import.meta.url);

/** Node's own Temporal, or the polyfill where Node has none (24). It is required, not imported: loading the polyfill takes
 *  30 ms, which a Node that has its own Temporal should not pay. */
export const { Temporal } = "Temporal" in globalThis ? globalThis : (require("temporal-polyfill") as typeof globalThis);

/**
 * A stretch of time in which a zone's offset stays the same. At `start` the clock jumped from `offsetBefore`, at `end` it
 * jumps to `offsetAfter`: forward leaves a gap, backward times that come twice. Without a jump the two are equal to `offset`.
 */
export type Period = {
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  readonly offsetBefore: number;
  readonly offsetAfter: number;
};

export type Zone = { readonly name: string; periodAt(ms: number): Period };

// Three hundred years of two changes each. A search that goes further starts over instead of filling the memory.
const periodsMax = 600;
// Temporal would also take a whole ISO time and read the zone out of it.
const namePattern = /^(?:[a-z][a-z0-9_+\-/]{0,60}|[+-]\d{2}:\d{2})$/i;

/** The zone of this name. It is kept, with the periods that it has read. There are about 600 names, and each may be here several
 *  times, because names are case-insensitive. */
export const zoneOf: (given: string) => Zone = remember((given: string) => createZone(checkName(given)), { max: 2000 });

function createZone(name: string): Zone {
  const periods: Period[] = [];
  let recent: Period | undefined;

  return {
    name,
    periodAt(ms) {
      // Most questions are about the present period.
      if (recent !== undefined && recent.start <= ms && ms < recent.end) return recent;
      const index = periods.findLastIndex((period) => period.start <= ms);
      recent = periods[index];
      if (recent !== undefined && ms < recent.end) return recent;
      recent = readPeriod(name, ms);
      if (periods.length >= periodsMax) periods.length = 0;
      periods.push(recent);
      periods.sort((a, b) => a.start - b.start);
      return recent;
    },
  };
}

function readPeriod(name: string, ms: number): Period {
  const now = zonedTime(name, ms);
  // "previous" means strictly before, and a period includes its first millisecond.
  const begun = zonedTime(name, ms + 1).getTimeZoneTransition("previous");
  const ending = now.getTimeZoneTransition("next");
  const start = begun?.epochMilliseconds ?? -Infinity;
  return {
    start,
    end: ending?.epochMilliseconds ?? Infinity,
    offset: offsetMs(now),
    offsetBefore: begun === null ? offsetMs(now) : offsetMs(zonedTime(name, start - 1)),
    offsetAfter: offsetMs(ending ?? now),
  };
}

function zonedTime(name: string, ms: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(name);
}

function offsetMs(time: Temporal.ZonedDateTime): number {
  return time.offsetNanoseconds / 1e6;
}

function checkName(given: string): string {
  if (typeof given === "string" && namePattern.test(given)) {
    try {
      return zonedTime(given, 0).timeZoneId;
    } catch {
      // Falls through to the one message.
    }
  }
  const meant = typeof given === "string" ? likelyZone(given) : undefined;
  const advice =
    meant === undefined ? 'use an IANA name such as "Europe/Madrid", or "UTC"' : `did you mean "${meant}"?`;
  throw invalid(`zone is ${quote(given)}, which is no time zone known here; ${advice}`, {
    details: meant === undefined ? {} : { meant },
  });
}

/** People often leave out the continent, or write the city with spaces. */
function likelyZone(given: string): string | undefined {
  const known = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const city = given.trim().replaceAll(" ", "_").toLowerCase();
  return known.find((name) => name.toLowerCase().endsWith(`/${city}`)) ?? nearest(given, known);
}
