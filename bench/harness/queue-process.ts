// One queue in a process of its own: opened, measured, closed. The parent says which and how much (measure-queue.ts).
import type { Figures, QueueTask } from "./measure-queue.ts";
import type { OpenQueue } from "./queue.ts";
import { enqueueAll, timeDrain, timeEnqueue, timeIdle } from "./time-queue.ts";

const task = JSON.parse(process.argv[2] ?? "") as QueueTask;
const { openQueue } = (await import(task.module)) as { openQueue: OpenQueue };
const queue = await openQueue(task.place, task.checkout);

// Until the code on the path is compiled: a server runs for longer.
await enqueueAll(queue, task.warmUpJobs);
await timeDrain(queue, 100, task.warmUpJobs);
const idleMs = await timeIdle(queue, task.pings);

let enqueuePerS = Number.NaN;
let drainedIdleMs = Number.NaN;
const drainPerS: Record<number, number> = {};
for (const [index, { places, jobs }] of task.drains.entries()) {
  const perS = await timeEnqueue(queue, jobs);
  await queue.analyse?.();
  drainPerS[places] = await timeDrain(queue, places, jobs);
  if (index > 0) continue;
  enqueuePerS = perS;
  drainedIdleMs = await timeIdle(queue, task.pings);
}
await queue.close();

const rssMb = Math.round(process.resourceUsage().maxRSS / 1024);
const figures: Figures = { about: queue.about, enqueuePerS, drainPerS, idleMs, drainedIdleMs, rssMb };
process.send?.(figures, () => process.exit(0));
