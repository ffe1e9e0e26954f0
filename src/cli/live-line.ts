// One line at the bottom of a terminal that is drawn again and again. Whatever else is printed goes above it.
import { systemClock, type Clock, type Timer } from "../core/clock.ts";

export type LiveLine = {
  /** Draws what `text` gives, now and from here on by itself. */
  start(text: () => string): void;
  /** Prints a line that stays, above. */
  above(text: string): void;
  /** Somebody else is about to print this: the line steps aside, and comes back once they have ended theirs. */
  makeRoom(chunk: string | Uint8Array): void;
  stop(): void;
};

export const redrawMs = 250;
const eraseLine = "\r\u001B[K";

export function createLiveLine(out: { write(text: string): unknown }, clock: Clock = systemClock): LiveLine {
  let timer: Timer | undefined;
  let shown = "";
  // Half a line of somebody else's must not be drawn over.
  let atLineStart = true;

  function draw(text: () => string): void {
    const line = text();
    if (atLineStart && line !== shown) {
      out.write(`${eraseLine}${line}`);
      shown = line;
    }
    timer = clock.after(redrawMs, () => draw(text));
  }
  function erase(): void {
    if (shown !== "") out.write(eraseLine);
    shown = "";
  }

  return {
    start: draw,
    above(text) {
      const line = shown;
      erase();
      out.write(`${atLineStart ? "" : "\n"}${text}\n${line}`);
      shown = line;
      atLineStart = true;
    },
    makeRoom(chunk) {
      erase();
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      if (text !== "") atLineStart = text.endsWith("\n");
    },
    stop() {
      timer?.cancel();
      erase();
    },
  };
}

/** A line on the terminal that the first of `streams` is. What anyone writes to them goes above it: a handler's own
 *  `console.log` must not end up in the middle of the line. */
export function liveLineOn(streams: readonly [NodeJS.WriteStream, ...NodeJS.WriteStream[]]): LiveLine {
  const write = streams[0].write.bind(streams[0]);
  const live = createLiveLine({ write: (text) => write(text) });
  for (const stream of streams.filter(({ isTTY }) => isTTY)) {
    const original = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
      live.makeRoom(chunk);
      return original(chunk, ...rest);
    };
  }
  return live;
}
