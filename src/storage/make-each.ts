// Makes things of rows that hold documents. Parsing a full page at once held the loop for 20 ms, so the loop has a turn
// after each piece of it.
import { systemClock } from "../core/clock.ts";
import { textIn } from "./slices.ts";

/** Text of this length is parsed within a millisecond. */
const charactersPerTurn = 131_072;
/** What a row takes beside its text. */
const charactersPerRow = 100;

/** `turn` is left to the caller, because a transaction that holds the writer goes on at once. */
export async function makeEach<Row extends object, T>(
  rows: readonly Row[],
  make: (row: Row, index: number) => T,
  turn: () => Promise<void> = systemClock.nextTurn,
): Promise<T[]> {
  const made: T[] = [];
  let characters = 0;
  for (const [index, row] of rows.entries()) {
    if (characters >= charactersPerTurn) {
      await turn();
      characters = 0;
    }
    made.push(make(row, index));
    characters += charactersPerRow + textIn(row);
  }
  return made;
}
