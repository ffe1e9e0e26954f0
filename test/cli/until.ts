import { setTimeout as sleep } from "node:timers/promises";

/** Waits for something that another process does. It gives up only when the test would hang otherwise. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error("it did not happen within 60 s");
    await sleep(10);
  }
}
