// How long a queue takes: to accept jobs, to work them off, and to begin one while it has nothing else to do.
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "./median.ts";
import { sampleParams, type Queue } from "./queue.ts";

export const callers = 100;

/** Jobs per second, enqueued by `callers` callers that each ask again once they are answered. */
export async function timeEnqueue(queue: Queue, jobs: number): Promise<number> {
  const begun = performance.now();
  await enqueueAll(queue, jobs);
  return perSecond(jobs, performance.now() - begun);
}

export async function enqueueAll(queue: Queue, jobs: number): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < jobs) await queue.enqueue(sampleParams(next++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

/** Jobs per second from the start of the first handler until every completion is on disk. The queue must hold exactly
 *  `jobs` jobs. What a worker does before its first job is not counted: connecting, and the first claim, which favours those that
 *  take many at once. */
export async function timeDrain(queue: Pick<Queue, "work">, places: number, jobs: number): Promise<number> {
  const begun = Promise.withResolvers<void>();
  let count = 0;
  let firstAt = 0;
  const worker = await queue.work(places, () => {
    if (count++ === 0) firstAt = performance.now();
    if (count === jobs) begun.resolve();
  });
  await begun.promise;
  await worker.settled();
  const endedAt = performance.now();
  await worker.stop();
  if (count !== jobs) throw new Error(`${jobs} jobs were enqueued and ${count} were run`);
  return perSecond(jobs, endedAt - firstAt);
}

const pingsMin = 20;
const pingsMs = 5000;
// Longer than any of them takes to settle a job and to fall asleep.
const pauseMs = 5;

/** The median of the milliseconds from the call of enqueue to the start of the handler, one job at a time. */
export async function timeIdle(queue: Queue, pings: number): Promise<number> {
  let began: (at: number) => void = () => {};
  const worker = await queue.work(10, () => began(performance.now()));
  const waitsMs: number[] = [];
  const endAt = performance.now() + pingsMs;
  for (let n = 0; n < pings && (n < pingsMin || performance.now() < endAt); n++) {
    const handled = new Promise<number>((resolve) => (began = resolve));
    const askedAt = performance.now();
    await queue.enqueue(sampleParams(n));
    waitsMs.push((await handled) - askedAt);
    await sleep(pauseMs);
  }
  await worker.settled();
  await worker.stop();
  // The first ones wait for what a worker does once, when it starts.
  return median(waitsMs.slice(Math.ceil(waitsMs.length / 10)));
}

function perSecond(jobs: number, ms: number): number {
  return (jobs * 1000) / ms;
}
