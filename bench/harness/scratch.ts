// A folder for the files of a benchmark, on the disk of the temporary directory. It goes when the process does, also
// when that is by Ctrl-C.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let folder: string | undefined;

/** A path of this name that no other process uses. */
export function scratch(name: string): string {
  folder ??= makeFolder();
  return join(folder, name);
}

function makeFolder(): string {
  const made = mkdtempSync(join(tmpdir(), "daybook-bench-"));
  process.on("exit", () => rmSync(made, { recursive: true, force: true }));
  process.on("SIGINT", () => process.exit(130));
  process.on("SIGTERM", () => process.exit(143));
  return made;
}
