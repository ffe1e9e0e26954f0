// A stretch of time that rollups can answer for: from a whole minute to a whole minute, cut into the largest spans that fit.
import { durationMs, type Duration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { isoTime, timeMs, type TimeInput } from "../../core/time.ts";
import { minuteMs } from "../rollup/read-slice.ts";
import { dayMs, hourMs } from "../rollup/write-rollup.ts";

export type WindowOptions = {
  /** From when on, or how long ago: `"24h"`. Default 24 hours ago. Cut down to its minute. */
  readonly since?: TimeInput | Duration;
  /** Until when; default now. Filled up to its minute. */
  readonly until?: TimeInput | Duration;
};

export type Window = { readonly since: number; readonly until: number };

export type Piece = { readonly span: "minute" | "hour" | "day"; readonly from_at: number; readonly to_at: number };

const durationText = /^\d+(?:\.\d+)?\s*[a-z]+$/i;

/** A moment, or a duration back from now. */
export function momentMs(now: number, given: TimeInput | Duration, what: string): number {
  return typeof given === "string" && durationText.test(given) ? now - durationMs(given, what) : timeMs(given, what);
}

export function toWindow(now: number, { since = "24h", until }: WindowOptions): Window {
  const from = momentMs(now, since, "since");
  const to = until === undefined ? now + 1 : momentMs(now, until, "until");
  if (from >= to) throw invalid(`since ${isoTime(from)} is not before until ${isoTime(to)}`);
  return { since: from - (from % minuteMs), until: Math.ceil(to / minuteMs) * minuteMs };
}

/** Days where whole days fit, then hours, then minutes: a year is some hundred rows of each series and not half a million. */
export function piecesOf({ since, until }: Window): Piece[] {
  const [firstHour, lastHour] = [up(since, hourMs), down(until, hourMs)];
  if (firstHour > lastHour) return [{ span: "minute", from_at: since, to_at: until }];
  const [firstDay, lastDay] = [up(since, dayMs), down(until, dayMs)];
  const hours: Piece[] =
    firstDay > lastDay
      ? [{ span: "hour", from_at: firstHour, to_at: lastHour }]
      : [
          { span: "hour", from_at: firstHour, to_at: firstDay },
          { span: "day", from_at: firstDay, to_at: lastDay },
          { span: "hour", from_at: lastDay, to_at: lastHour },
        ];
  const pieces: Piece[] = [
    { span: "minute", from_at: since, to_at: firstHour },
    ...hours,
    { span: "minute", from_at: lastHour, to_at: until },
  ];
  return pieces.filter(({ from_at: from, to_at: to }) => from < to);
}

function up(ms: number, span: number): number {
  return Math.ceil(ms / span) * span;
}

function down(ms: number, span: number): number {
  return Math.floor(ms / span) * span;
}
