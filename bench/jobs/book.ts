// Daybook as a queue: the public API only, so that the book of another checkout can be measured by the same lines.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Daybook from "../../src/index.ts";
import type { OpenQueue, Params } from "../harness/queue.ts";
import { readFileSync } from "node:fs";

const here = join(import.meta.dirname, "../..");

export const openQueue: OpenQueue = async (place, checkout = here) => {
  const { job, open } = (await import(pathToFileURL(join(checkout, "src/index.ts")).href)) as typeof Daybook;
  let begin: () => void = () => {};
  const noop = job("noop", { run: async (_params: Params) => begin() });
  const book = await open(place, { use: [noop] });
  const postgres = place.startsWith("postgres");
  return {
    about: {
      version: versionOf(checkout),
      durability: postgres ? "power loss (fsync on)" : 'power loss (durability "full")',
      settings: "concurrency as measured, everything else by default; keeps every job and a run for each",
    },
    enqueue: (params) => book.jobs.enqueue(noop, params),
    async work(places, handler) {
      begin = handler;
      const worker = await book.startWorker({ concurrency: places });
      return { settled: () => worker.idle(), stop: () => worker.stop() };
    },
    ...(postgres ? { analyse: () => book.write(async (tx) => void (await tx.sql`analyze`)) } : {}),
    close: () => book.close(),
  };
};

function versionOf(checkout: string): string {
  const manifest = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };
  return `Daybook ${manifest.version}`;
}
