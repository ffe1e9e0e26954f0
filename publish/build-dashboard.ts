// Builds the dashboard into dist/dashboard, if its sources or its libraries have changed since. Part of `npm run build` and `npm start`.
import { createHash } from "node:crypto";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";

const root = join(import.meta.dirname, "..");
const source = join(root, "src/dashboard");
const target = join(root, "dist/dashboard");
const stampFile = join(target, "built-from");

const stamp = fingerprint();
if (read(stampFile) !== stamp) {
  await build({
    root: source,
    base: "./",
    configFile: false,
    publicDir: join(source, "public"),
    logLevel: "warn",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: target,
      emptyOutDir: true,
      target: "es2024",
      modulePreload: { polyfill: false },
      sourcemap: false,
    },
  });
  writeFileSync(stampFile, stamp);
}

function fingerprint(): string {
  const hash = createHash("sha256");
  const files = globSync(["src/dashboard/**/*", "src/client/*.ts", "src/core/*.ts"], { cwd: root, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .toSorted();
  for (const path of [...files, join(root, "package-lock.json"), import.meta.filename]) {
    hash.update(path.slice(root.length)).update("\0").update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex");
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
