import { setTimeout as sleep } from "node:timers/promises";

/** Waits for something that another process does. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error("it did not happen within 20 s");
    await sleep(10);
  }
}
