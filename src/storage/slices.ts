// Work on thousands of rows, or on large ones, in slices between which the event loop has a turn: in one piece, ten thousand rows hold
// it for a tenth of a second and more. A transaction stays one all the same, and open meanwhile, so only other writers wait on.
import { systemClock } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import type { Awaitable } from "./store.ts";

/** A slice of large rows ends earlier. */
const sliceCharactersMax = 1_048_576;

/** Does the work slice by slice, in order. `from` is where a slice begins. */
export async function inSlices<T>(
  all: readonly T[],
  work: (slice: readonly T[], from: number) => Awaitable<unknown>,
  charactersOf: (each: T) => number = textIn,
): Promise<void> {
  for (let from = 0; from < all.length;) {
    if (from > 0) await systemClock.nextTurn();
    let [to, characters] = [from, 0];
    const most = Math.min(all.length, from + limits.sliceRowsMax);
    while (to < most && characters < sliceCharactersMax) characters += charactersOf(all[to++] as T);
    await work(from === 0 && to === all.length ? all : all.slice(from, to), from);
    from = to;
  }
}

/** How long the texts of a row are together. */
export function textIn(row: unknown): number {
  if (typeof row !== "object" || row === null) return 0;
  let characters = 0;
  for (const value of Object.values(row)) if (typeof value === "string") characters += value.length;
  return characters;
}

/** Text of this length is parsed within a millisecond. */
const charactersPerTurn = 131_072;
/** What a document takes beside its text, to find it and to check it. */
const charactersPerDocument = 500;

/** For documents that may be small or large: to be awaited after each of them. The loop has a turn when many, or a large one, have been
 *  worked on since its last one. */
export function pace(): (text: string) => Promise<void> | undefined {
  let characters = 0;
  return ({ length }) => {
    characters += charactersPerDocument + length;
    if (characters < charactersPerTurn) return undefined;
    characters = 0;
    return systemClock.nextTurn();
  };
}
