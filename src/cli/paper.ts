// What the command line prints on: a terminal of some width, in the reader's zone, or a pipe.
import { systemClock } from "../core/clock.ts";
import type { Paper } from "../verbs/render.ts";

export function paperOf(stream: NodeJS.WriteStream, { utc }: { utc: boolean }): Paper {
  const isTerminal = stream.isTTY === true;
  return {
    width: isTerminal ? stream.columns : null,
    colour: isTerminal && stream.hasColors(),
    zone: utc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone,
    now: systemClock.now(),
  };
}
