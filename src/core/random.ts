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
