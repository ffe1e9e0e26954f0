// The world around the demo's book: what time it is there, how fast things happen, and where its servers listen. While a day of
// history is made, its clock is one that runs fast; from then on it is that of the machine.
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "daybook";

type World = {
  /** Where the book is. */
  book: string;
  clock: Pick<Clock, "now" | "sleep">;
  /** How long it is until the next thing of that kind happens. */
  pace: (kind: Kind, count: number) => number;
  /** Where the stock, the payments and the price list are asked. */
  api: string;
  /** Where the warehouse and the office hear what happens. */
  hooks: string;
  /** When the stock does not answer. */
  outage: { readonly from: number; readonly to: number };
  /** How many runs wait for the clock, and for nothing else. */
  asleep: number;
};

export type Kind = "order" | "motion" | "phone" | "reading";

const calm: Readonly<Record<Kind, number>> = { order: 6000, motion: 9000, phone: 45_000, reading: 30_000 };

const present: Pick<World, "clock" | "pace"> = {
  clock: {
    now: () => Date.now(),
    // As a book's clock does it: an abort ends the sleep, and is no failure.
    sleep: (ms, signal) => wait(ms, undefined, { signal }).catch(() => undefined),
  },
  // Now and then a little earlier or later, so that it does not look like a machine.
  pace: (kind, count) => calm[kind] * (0.6 + ((count * 7) % 9) / 10),
};

export const world: World = {
  ...present,
  book: ".daybook/demo.db",
  api: "http://127.0.0.1:4601",
  hooks: "http://127.0.0.1:4602",
  outage: { from: 0, to: 0 },
  asleep: 0,
};

/** From here on time is the machine's, and things happen at a calm pace. */
export function joinThePresent(): void {
  Object.assign(world, present);
}

/** What a job does here: it takes a while. Throws when its run is to end. */
export async function takes(ms: number, signal?: AbortSignal): Promise<void> {
  world.asleep++;
  try {
    await world.clock.sleep(ms, signal);
  } finally {
    world.asleep--;
  }
  signal?.throwIfAborted();
}

/** Does something again and again, at the world's pace, until the signal. */
export async function everyNowAndThen(kind: Kind, signal: AbortSignal, act: (count: number) => unknown): Promise<void> {
  for (let count = 1; !signal.aborted; count++) {
    await world.clock.sleep(world.pace(kind, count), signal);
    if (!signal.aborted) await act(count);
  }
}
