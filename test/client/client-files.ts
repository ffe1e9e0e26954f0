// The client as a browser gets it: JavaScript in files that import each other, with no build.
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { delimiter, dirname, join, relative } from "node:path";
import { blankOut, importsOf } from "../tidy/scan.ts";

const root = join(import.meta.dirname, "../..");

/** The client as JavaScript, by the paths of its files, with what each imports when it runs. */
export function clientFiles(): Map<string, { readonly code: string; readonly imports: readonly string[] }> {
  const files = new Map<string, { code: string; imports: string[] }>();
  const follow = (path: string): void => {
    if (files.has(path)) return;
    const code = stripTypeScriptTypes(readFileSync(join(root, path), "utf8"));
    const imports = importsOf(code, blankOut(code)).map(({ specifier }) => specifier);
    files.set(path, { code, imports });
    for (const each of imports) if (each.startsWith(".")) follow(relative(root, join(root, dirname(path), each)));
  };
  follow("src/client/connect.ts");
  return files;
}

export function writeClient(folder: string): void {
  for (const [path, { code }] of clientFiles()) {
    const target = join(folder, path.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, code.replaceAll(/(from\s+"\.[^"]+)\.ts"/g, '$1.js"'));
  }
}

/** A program of this machine, or undefined. */
export function find(name: string): string | undefined {
  const paths = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
