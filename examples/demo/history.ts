// A day of history, lived by the product itself on a fast clock: nothing is written that the engine would not write.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { open, seededRandom, type Book } from "daybook";
import { stockTheShop } from "./catalogue.ts";
import { createDayClock, type DayClock } from "./day-clock.ts";
import { definitions } from "./definitions.ts";
import { openTheLaboratory } from "./research.ts";
import { allowed, startServers } from "./servers.ts";
import { story } from "./story.ts";
import { letTheTenantsIn } from "./tenants.ts";
import { fillTheTimetable } from "./timetable.ts";
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

/** Where the demo's calls may go, and the key that seals them. A program of yours takes its key from its environment. */
export const callSettings = () => ({ key: Buffer.alloc(32, 7), allow: allowed() });

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Makes the book, which must not be there, and gives it its past. */
export async function makeHistory(url: string, options: HistoryOptions = {}): Promise<void> {
  const { now, days = 1, scale = 1, signal } = options;
  const endsAt = now ?? Date.now();
  const ago = (minutes: number): number => endsAt - minutes * minuteMs;
  const clock = createDayClock(endsAt - days * dayMs, signal);
  mkdirSync(filesOf(url), { recursive: true });
  const servers = await startServers();
  const crashing = spawnCrash(url);
  Object.assign(world, { clock, pace: rhythm(clock, scale), outage: { from: ago(190), to: ago(170) } });
  let session = await begin(url, clock);
  try {
    await furnish(session.book);
    for (const { minutesAgo, act } of story) {
      if (ago(minutesAgo) < clock.now()) continue;
      await clock.liveUntil(ago(minutesAgo));
      if (act === "crash") await crash(crashing, session.book, clock);
      else if (act !== "restart") await act(session.book);
      else {
        await session.end();
        // It takes a moment until the new version is there.
        await clock.liveUntil(clock.now() + 40_000);
        session = await begin(url, clock);
      }
    }
    // Making it takes a few seconds, in which the present moves on.
    do await clock.liveUntil(now ?? Date.now());
    while (now === undefined && clock.now() < Date.now() - 1000);
  } finally {
    crashing.kill("SIGKILL");
    await session.end();
    joinThePresent();
    await servers.close();
  }
}

/** The folder in which the book's programs work. */
export function filesOf(url: string): string {
  return join(resolve(dirname(url)), "laboratory");
}

async function furnish(book: Book): Promise<void> {
  await book.write(stockTheShop);
  await openTheLaboratory(book);
  await fillTheTimetable(book);
  await letTheTenantsIn(book);
}

let version = 1;

/** One program that has the book open, from its start to its end. */
async function begin(url: string, clock: DayClock): Promise<{ book: Book; end: () => Promise<void> }> {
  const book = await open(url, {
    use: definitions(filesOf(url)),
    clock,
    random: seededRandom(version),
    // Nobody loses anything if the power fails now: the history is made again.
    durability: "normal",
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    calls: callSettings(),
    // Nobody waits for what runs when it ends. It is made again in its place.
    worker: { concurrency: 20, grace: 0 },
    metadata: { program: "shop", version: `1.4.${version++}` },
  });
  const worker = await book.startWorker();
  clock.isQuiet = () => worker.running <= world.asleep;
  // One that writes nothing comes after all others.
  clock.written = () => book.write(() => undefined);
  return {
    book,
    async end() {
      clock.isQuiet = () => true;
      clock.written = async () => undefined;
      await book.close();
    },
  };
}

function spawnCrash(url: string): ChildProcess {
  const program = [...process.execArgv, join(import.meta.dirname, "crash.ts"), url];
  return spawn(process.execPath, program, { stdio: ["pipe", "pipe", "inherit"] });
}

/** The other program opens the book and begins its job; then its process is killed, and the shop's notices. */
async function crash(child: ChildProcess, book: Book, clock: DayClock): Promise<void> {
  child.stdin?.end(`${clock.now()}\n`);
  if (child.stdout !== null) await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  await book.sessions.look();
}

/** How busy each hour of the day is, from midnight on. */
const hours = [1, 1, 0.5, 0.5, 0.5, 1, 2, 4, 6, 8, 9, 11, 14, 13, 10, 9, 8, 9, 10, 11, 9, 6, 4, 2];
const anHour: Readonly<Record<Kind, number>> = { order: 1, motion: 1.7, phone: 0.4, reading: 0.8 };

function rhythm(clock: DayClock, scale: number): (kind: Kind, count: number) => number {
  return (kind, count) => {
    const busy = hours[new Date(clock.now()).getHours()] ?? 1;
    const spread = 0.4 + ((count * 7) % 13) / 10;
    return ((60 * minuteMs) / (anHour[kind] * busy * scale)) * spread;
  };
}
