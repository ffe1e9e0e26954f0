import { V7Generator } from "uuidv7";
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

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
