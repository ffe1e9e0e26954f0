// Ids, and the randomness they are made of.
import { V7Generator } from "uuidv7";
import type { Clock } from "./clock.ts";
import { getRandomValues } from "node:crypto";

/** A number from 0 up to, but not including, 1. */
export type Random = () => number;

// Ids are made from these numbers and some ids are shown to strangers, so they come from the system's strong source
// and not from Math.random. Fetching them in batches costs about as little per number as Math.random would.
export const systemRandom: Random = inBatches(new Uint32Array(1024));

function inBatches(pool: Uint32Array<ArrayBuffer>): Random {
  let used = pool.length;
  return () => {
    if (used + 2 > pool.length) {
      getRandomValues(pool);
      used = 0;
    }
    const high = (pool[used++] ?? 0) >>> 5;
    const low = (pool[used++] ?? 0) >>> 6;
    // 27 and 26 bits make the 53 that a double holds exactly.
    return (high * 2 ** 26 + low) / 2 ** 53;
  };
}

/** The same numbers for the same seed, for tests (mulberry32). Never for ids that leave the machine. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Spreads `ms` evenly over `ms × (1 − spread)` to `ms × (1 + spread)`, so that many waiters do not wake together and
 * yet wait `ms` on average. The result is not rounded.
 */
export function jitter(random: Random, ms: number, spread = 0.5): number {
  return ms * (1 - spread + random() * 2 * spread);
}

/** Makes the next id: UUIDv7 text, greater than every id this maker gave before. */
export type Ids = () => string;

// The time in a UUIDv7 has 48 bits; an allowance as wide means that no step back of the clock is ever "too big".
const timestampMsMax = 2 ** 48 - 1;

/**
 * Ids sort by the time they were made. When the wall clock goes back, the last time is used again with a higher
 * counter, because order within a process is relied on and the time inside an id is only a hint.
 */
export function createIds(clock: Clock, random: Random): Ids {
  const generator = new V7Generator({ nextUint32: () => Math.floor(random() * 2 ** 32) });
  generator.setRollbackAllowance(timestampMsMax);
  return () => {
    const timeMs = Math.min(Math.max(0, clock.now()), timestampMsMax);
    // Resetting would break the order; with the full allowance the generator never has a reason to.
    return generator.generateOrResetWithTs(timeMs).toString();
  };
}

const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether the text is an id as we write them: lower case with hyphens, since ids are compared as text. */
export function isId(text: string): boolean {
  return idPattern.test(text);
}
