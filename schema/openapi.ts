// npm run openapi: writes what is made from the table of verbs: the document of the API, the reference, the routes of the client and
// the commands of the dashboard. A test compares them (test/server/openapi.test.ts).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "../src/index.ts";
import { openapi } from "../src/server/openapi.ts";
import type { Schema } from "../src/verbs/field.ts";
import { everyVerb } from "../src/verbs/table.ts";
import type { Outputs } from "../src/verbs/wire.ts";
import { clientRoutes, clientTimes, commandLines } from "./client.ts";
import { describeReference } from "./reference.ts";

const root = join(import.meta.dirname, "..");

const outputs = read("src/verbs/outputs.json") as Outputs;

export async function describeApi(): Promise<Schema> {
  const { version } = read("package.json") as { version: string };
  return openapi(await everyVerb(), { version, outputs });
}

function read(path: string): unknown {
  return JSON.parse(readFileSync(join(root, path), "utf8"));
}

/** The generated files, by their paths. */
export async function generated(): Promise<Record<string, string>> {
  const table = await everyVerb();
  return {
    "docs/openapi.json": `${written(await describeApi(), 3)}\n`,
    "src/client/routes.ts": clientRoutes(table),
    "src/client/times.ts": clientTimes(table, outputs),
    "src/dashboard/state/commands.ts": commandLines(table),
    "docs/reference.md": await reference(),
  };
}

/** The library is asked what it has. */
async function reference(): Promise<string> {
  await using book = await open(":memory:", { worker: false });
  return await describeReference((path) => {
    const found = path.reduce<unknown>((of, name) => (of as Record<string, unknown> | undefined)?.[name], book);
    return typeof found === "function";
  });
}

/** One line for each operation and each schema, so that a change is seen where it is. */
function written(value: unknown, depth: number, indent = ""): string {
  if (depth === 0 || typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  const inner = `${indent}  `;
  const lines = Object.entries(value).map(
    ([name, each]) => `${inner}${JSON.stringify(name)}: ${written(each, depth - 1, inner)}`,
  );
  return lines.length === 0 ? "{}" : `{\n${lines.join(",\n")}\n${indent}}`;
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(await generated())) {
    writeFileSync(join(root, path), text);
    console.log(`wrote ${path}`);
  }
}
