// The package as users get it, built beside the other scratch files: `npm run build` would replace dist/ and check more.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { scratch } from "../harness/scratch.ts";

/** Where the library and the command line begin. */
export type Package = { readonly index: string; readonly main: string };

export async function buildPackage(): Promise<Package> {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const folder = scratch("package");
  mkdirSync(folder);
  cpSync(join(root, "package.json"), join(folder, "package.json"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const options = ["--project", join(root, "tsconfig.build.json"), "--outDir", join(folder, "dist")];
  // A type error is for `npm run check` to report: the JavaScript is there all the same.
  await promisify(execFile)(process.execPath, [tsc, ...options]).catch(() => undefined);
  return { index: join(folder, "dist", "index.js"), main: join(folder, "dist", "cli", "main.js") };
}
