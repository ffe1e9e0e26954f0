// Chance that falls the same way every time: what happens to order o-17 follows from its name, not from who asked first.
import { seededRandom } from "daybook";

/** A number from 0 up to, but not including, 1. The same words give the same number. */
export function chance(...words: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const char of words.join("/")) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return seededRandom(hash)();
}

/** A whole number of that range, both ends included. */
export function between(least: number, most: number, ...words: readonly (string | number)[]): number {
  return least + Math.floor(chance(...words) * (most - least + 1));
}

export function pick<const Items extends readonly [unknown, ...unknown[]]>(
  items: Items,
  ...words: readonly (string | number)[]
): Items[number] {
  return items[between(0, items.length - 1, ...words)];
}
