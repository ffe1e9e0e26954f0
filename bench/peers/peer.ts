// The packages beside which Daybook is measured are installed in this folder only, and only when they are asked for. So they
// are loaded by name, and each file here says which part of theirs it uses: the repo's types are checked without them.
import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const folder = import.meta.dirname;
const require = createRequire(import.meta.url);

export function peer<T>(name: string): T {
  return require(name) as T;
}

/** The exact version that is installed; undefined when it is not. */
export function versionOf(name: string): string | undefined {
  try {
    const manifest = readFileSync(join(folder, "node_modules", name, "package.json"), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  } catch {
    return undefined;
  }
}

/** Installs what the lock file says, unless that has been done since the file was last changed. */
export function installPeers(): void {
  if (changedAt("node_modules/.package-lock.json") >= changedAt("package-lock.json")) return;
  console.log("installing the peers into bench/peers/node_modules");
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: "inherit",
  });
  if (status !== 0) throw new Error(`npm ci in bench/peers ended with ${status}`);
}

function changedAt(path: string): number {
  return statSync(join(folder, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
