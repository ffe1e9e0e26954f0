// Part of `npm run build`: deletes the declarations that no public type leads to. They would be more than half of the package's
// files, and an editor would offer names from them that are not public.
import { globSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { exports: Record<string, unknown> };

const reached = new Set<string>();
for (const door of Object.values(manifest.exports)) {
  const types: unknown = typeof door === "object" && door !== null ? Reflect.get(door, "types") : undefined;
  if (typeof types === "string") reach(join(root, types));
}
for (const path of globSync("**/*.d.ts", { cwd: dist })) if (!reached.has(join(dist, path))) rmSync(join(dist, path));

function reach(path: string): void {
  if (reached.has(path)) return;
  reached.add(path);
  const text = readFileSync(path, "utf8");
  for (const [, target = ""] of text.matchAll(/\b(?:from\s*|import\s*\(?\s*)"(\.[^"]+)\.[jt]s"/g)) {
    reach(`${resolve(dirname(path), target)}.d.ts`);
  }
}
