// A program that sends calls until it is ended. It is started by call-process.ts; tests kill it.
import { systemClock } from "../../src/core/clock.ts";
import { open } from "../../src/index.ts";

const { url, submits, target } = JSON.parse(process.argv[2] ?? "{}") as {
  url: string;
  /** How many it submits, one after the other, to the target. */
  submits?: number;
  target?: string;
};

const book = await open(url, { calls: { allow: ["127.0.0.1"], perHost: { concurrency: 20 } } });
await book.startWorker({ concurrency: 20 });
process.send?.({ said: "working" });

async function submit(): Promise<void> {
  for (let n = 0; n < (submits ?? 0); n++) {
    const { id } = await book.calls.submit({ url: `${target ?? ""}/${n}`, retry: ["0s", "0s", "0s"] });
    // Only what the book has acknowledged is told.
    await new Promise<void>((resolve) => process.send?.({ said: "submitted", id }, () => resolve()));
    await systemClock.sleep(2);
  }
}

await Promise.all(Array.from({ length: 5 }, submit));
