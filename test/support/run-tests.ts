// `npm test`: every test but those of test/proof/, in units that share a process.
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { globalSetup, globalTeardown } from "./postgres-setup.ts";
import { makeScratch, removeScratch } from "./scratch.ts";
import { testUnits } from "./test-units.ts";

const folder = makeScratch(tmpdir(), "test");
process.once("exit", () => removeScratch(folder));

const files = globSync(["test/*.test.ts", "test/!(proof)/**/*.test.ts"])
  .toSorted()
  .map((path) => ({ path, text: readFileSync(path, "utf8") }));

await globalSetup();
const results = run({
  files: testUnits(files).map(entry),
  // For half of its time a test waits: for other processes, for PostgreSQL, for real timers.
  concurrency: Math.min(2 * availableParallelism(), 8),
  timeout: 300_000,
});
results.on("test:fail", () => {
  process.exitCode = 1;
});
results.compose(spec).pipe(process.stdout);
await once(results, "end");
await globalTeardown();

/** What the process of a unit starts with: a file of its own, or one that imports all of its files. */
function entry(unit: readonly string[], index: number): string {
  const [first = "", ...others] = unit.map((path) => resolve(path));
  if (others.length === 0) return first;
  const path = join(folder, `unit-${index}.test.mjs`);
  const imports = [first, ...others].map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};\n`);
  writeFileSync(path, imports.join(""));
  return path;
}
