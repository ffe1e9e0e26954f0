// Help and slips of the hand are answered at once: `daybook --help` loads nothing of the engine, nor a noun its neighbours.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Prints the address of every module that a process loads. */
const tracing = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({ load(url, context, next) { process.stderr.write(url + "\\n"); return next(url, context); } });
`)}`;

const helps: readonly (readonly [words: string[], loads: RegExp, spares: RegExp])[] = [
  [["--help"], /\/verbs\/book\/book\.ts$/m, /\/verbs\/\w+\/(?:jobs|records|calls)\.ts$/m],
  [["jobs", "--help"], /\/verbs\/work\/jobs\.ts$/m, /\/(?:verbs\/\w+\/(?:book|records)|cli\/(?:run|migrate))\.ts$/m],
  [["records", "list", "--help"], /\/verbs\/memory\/records\.ts$/m, /\/verbs\/\w+\/(?:book|jobs)\.ts$/m],
  [["help", "run"], /\/src\/cli\/run\.ts$/m, /\/src\/cli\/(?:work|load-definitions)\.ts$/m],
];

for (const [words, loads, spares] of helps) {
  test(`daybook ${words.join(" ")} loads nothing of the engine and no other noun`, async () => {
    const args = ["--import", tracing, join(root, "src/cli/main.ts"), ...words];

    const { stdout, stderr } = await promisify(execFile)(process.execPath, args);

    assert.match(stdout, /^Usage: daybook/);
    assert.match(stderr, loads);
    assert.doesNotMatch(stderr, spares);
    assert.doesNotMatch(stderr, /\/src\/(?:storage|book|open)\/|\/node_modules\/(?!commander\/)/);
  });
}
