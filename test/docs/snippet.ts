// Code in the docs, run as a reader would run it: in a folder of its own, with daybook installed as a package.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { compileCache } from "../support/compile-cache.ts";
import { testFolder } from "../support/open-test.ts";

export const root = join(import.meta.dirname, "../..");

/** The blocks that begin with ```ts, in their order, without the stars of a doc comment. */
export function snippetsOf(source: string): string[] {
  return [...source.matchAll(/^([ *]*)```ts\n([^]*?)^[ *]*```/gm)].map(([, indent = "", block = ""]) =>
    block
      .split("\n")
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line.trim()))
      .join("\n"),
  );
}

/** A project in which `import "daybook"` finds this repo, and programs named like `files` stand. */
export function projectWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = testFolder(t);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/daybook"));
  for (const name of ["zod", "kysely", "drizzle-orm", "pg", "@types"]) {
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = { typeRoots: [join(root, "node_modules/@types")] };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] }),
  );
  for (const [name, code] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), code);
  }
  return folder;
}

type Ended = { code: number | null; stdout: string; stderr: string };

export function runProgram(path: string, cwd: string, args: readonly string[] = []): Promise<Ended> {
  return end(process.execPath, ["--conditions=@daybook/source", path, ...args], cwd);
}

export function checkTypes(folder: string): Promise<Ended> {
  return end(join(root, "node_modules/.bin/tsc"), ["--noEmit", "-p", folder], folder);
}

async function end(program: string, args: readonly string[], cwd: string): Promise<Ended> {
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await closed;
  return { code: child.exitCode, stdout, stderr };
}

/** The pages of which everything that they show is one program. */
export const pages = [
  ...(["docs/apps.md", "docs/calls.md", "docs/events.md", "docs/jobs.md", "docs/records.md"] as const),
  ...([
    "docs/client.md",
    "docs/schedules.md",
    "docs/sinks.md",
    "docs/open.md",
    "docs/sql.md",
    "docs/telemetry.md",
    "docs/testing.md",
    "docs/your-toolkit.md",
  ] as const),
] as const;

export function programOf(page: (typeof pages)[number]): string {
  return snippetsOf(readFileSync(join(root, page), "utf8")).join("\n");
}

/** The program of a page runs without a word of complaint, and this is what it prints. That its types hold is asked of all
 *  pages at once, in types.test.ts. */
export async function runPage(t: TestContext, page: (typeof pages)[number]): Promise<string> {
  const folder = projectWith(t, { "page.ts": programOf(page) });
  const ran = await runProgram("page.ts", folder);
  assert.deepEqual([ran.code, ran.stderr], [0, ""]);
  return ran.stdout;
}
