// A day of history, lived by the product itself on a fast clock: nothing is written by hand that the engine would not write.
import { dirname, resolve } from "node:path";
import { open, seededRandom, type Book } from "daybook";
import { stockTheShop } from "./catalogue.ts";
import { createDayClock, type DayClock } from "./day-clock.ts";
import { definitions } from "./definitions.ts";
import { allowed, startServers } from "./servers.ts";
import { joinThePresent, world, type Kind } from "./world.ts";

export type HistoryOptions = {
  /** When the history ends; default now. */
  readonly now?: number;
  /** How many days it has; default 1. */
  readonly days?: number;
  /** How busy they are; default 1. */
  readonly scale?: number;
  /** Ends it early: then makeHistory throws, and the book is of no use. */
  readonly signal?: AbortSignal;
};

export const callSettings = () => ({ key: Buffer.alloc(32, 7), allow: allowed() });

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Makes the book, which must not be there, and gives it its past. */
export async function makeHistory(
  url: string,
  { now, days = 1, scale = 1, signal }: HistoryOptions = {},
): Promise<void> {
  const endsAt = now ?? Date.now();
  const clock = createDayClock(endsAt - days * 24 * hourMs, signal);
  const servers = await startServers();
  Object.assign(world, {
    clock,
    pace: rhythm(clock, scale),
    outage: { from: endsAt - 190 * minuteMs, to: endsAt - 170 * minuteMs },
  });
  try {
    await session(url, clock, { version: "1.4.1" }, async (book) => {
      await book.write(stockTheShop);
      await clock.liveUntil(endsAt - 7 * hourMs);
    });
    await session(url, clock, { version: "1.4.2" }, async () => {
      // Making it took a few seconds, in which the present has moved on.
      do await clock.liveUntil(now ?? Date.now());
      while (now === undefined && clock.now() < Date.now() - 1000);
    });
  } finally {
    joinThePresent();
    await servers.close();
  }
}

/** One program that has the book open, from its start to its end. */
async function session(
  url: string,
  clock: DayClock,
  metadata: { version: string },
  live: (book: Book) => Promise<void>,
): Promise<void> {
  const book = await open(url, {
    use: definitions(resolve(dirname(url))),
    clock,
    random: seededRandom(clock.now() % 65_521),
    // Nobody loses anything if the power fails now: the history is made again.
    durability: "normal",
    calls: callSettings(),
    worker: { concurrency: 20 },
    metadata: { program: "shop", ...metadata },
  });
  const worker = await book.startWorker();
  clock.isQuiet = () => worker.running <= world.asleep;
  try {
    await live(book);
  } finally {
    clock.isQuiet = () => true;
    await book.close();
  }
}

/** How busy each hour of the day is, from midnight on. */
const hours = [1, 1, 0.5, 0.5, 0.5, 1, 2, 4, 6, 8, 9, 11, 14, 13, 10, 9, 8, 9, 10, 11, 9, 6, 4, 2];
const anHour: Readonly<Record<Kind, number>> = { order: 1.1, motion: 2.4, phone: 0.4, reading: 0.8 };

function rhythm(clock: DayClock, scale: number): (kind: Kind, count: number) => number {
  return (kind, count) => {
    const busy = hours[new Date(clock.now()).getHours()] ?? 1;
    const spread = 0.4 + ((count * 7) % 13) / 10;
    return (hourMs / (anHour[kind] * busy * scale)) * spread;
  };
}
