// Writes pairs as fast as it can, so many at a time, and tells each acknowledged one at once and for good: the line is in
// the pipe before anything else happens, whatever happens then.
import { writeSync } from "node:fs";
import { isDaybookError } from "../../src/core/error.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { pairMigrations, writePair } from "../storage/pair.ts";

const [url = "", prefix = "", writers = "1"] = process.argv.slice(2);
const kinds = ["user", "engine", "shared"] as const;
const store = await openStore(url, pairMigrations);
let next = 0;

async function fill(): Promise<never> {
  for (;;) {
    const number = next++;
    const id = `${prefix}-${String(number).padStart(5, "0")}`;
    try {
      await store.write((tx) => writePair(tx, id), { by: kinds[number % kinds.length] ?? "user" });
    } catch (error) {
      if (isServerGone(error)) continue;
      throw error;
    }
    writeSync(1, `${id}\n`);
  }
}

// The server may be killed as well; then nothing is acknowledged.
function isServerGone(error: unknown): boolean {
  return url.startsWith("postgres") && isDaybookError(error) && /^(?:unknown_outcome|unavailable)$/.test(error.code);
}

await Promise.all(Array.from({ length: Number(writers) }, fill));
