// Part of `npm run build`: deletes the declarations that no public type leads to. They would be more than half of the package's
// files, and an editor would offer names from them that are not public.
import { globSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const dist = join(import.meta.dirname, "../dist");

const reached = new Set<string>();
for (const door of ["index", "client/connect", "book/kysely", "book/drizzle"]) reach(join(dist, `${door}.d.ts`));
for (const path of globSync("**/*.d.ts", { cwd: dist })) if (!reached.has(join(dist, path))) rmSync(join(dist, path));

function reach(path: string): void {
  if (reached.has(path)) return;
  reached.add(path);
  const text = readFileSync(path, "utf8");
  for (const [, target = ""] of text.matchAll(/\b(?:from\s*|import\s*\(?\s*)"(\.[^"]+)\.[jt]s"/g)) {
    reach(`${resolve(dirname(path), target)}.d.ts`);
  }
}
