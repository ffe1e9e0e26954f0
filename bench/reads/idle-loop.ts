// A thread that does nothing, to tell what holds every loop of this machine from what holds ours: where more processes want to
// run than there are cores, each of them waits for its turn.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { lookEveryMs, passedMs } from "./held.ts";

export type IdleLoop = {
  /** For how long it was held at most since it was last asked. */
  heldMs(): Promise<number>;
  stop(): Promise<unknown>;
};

export function startIdleLoop(): IdleLoop {
  const worker = new Worker(new URL(import.meta.url));
  return {
    heldMs: () =>
      new Promise((resolve) => {
        worker.once("message", resolve);
        worker.postMessage("held");
      }),
    stop: () => worker.terminate(),
  };
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  const delay = monitorEventLoopDelay({ resolution: lookEveryMs });
  delay.enable();
  port.on("message", () => {
    port.postMessage(passedMs(delay));
    delay.reset();
  });
}
