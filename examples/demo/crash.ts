// A second program that has the book open, and dies in the middle of its work: the history kills it. What it ran is lost, and made
// again for a program that knows such jobs; none does.
//
//   crash.ts <book>        with the time at which it dies on its standard input
import { once } from "node:events";
import { createInterface } from "node:readline";
import { job, open } from "daybook";
import { createDayClock } from "./day-clock.ts";

const transcode = job<{ file: string }>("transcode-video", {
  queue: "video",
  // It has not come far when its process is gone.
  run: () => new Promise(() => undefined),
});

// It began twenty seconds before it dies.
const livedMs = 20_000;
const [diesAt] = (await once(createInterface(process.stdin), "line")) as [string];
const clock = createDayClock(Number(diesAt) - livedMs);
const book = await open(process.argv[2] ?? ":memory:", {
  use: [transcode],
  clock,
  metadata: { program: "video", version: "0.9.0" },
});
await book.jobs.enqueue(transcode, { file: "chair-ash.mov" });
await book.startWorker();
await clock.liveUntil(Number(diesAt));
console.log("transcoding");
