// The definitions that a user's file exports. Node itself strips the types of a TypeScript file, so there is no build.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../core/clock.ts";
import { DaybookError, describeError, invalid } from "../core/error.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { Definition } from "../rooms.ts";

const advice = 'export them, one by one or as a list: export const greet = job("greet", { … })';

export async function loadDefinitions(path: string): Promise<Definition[]> {
  const file = resolve(path);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new DaybookError("not_found", `there is no file ${file}`, { details: { path: file } });
  if (!stats.isFile()) throw invalid(`${file} is not a file: name the module that exports your definitions`);
  const module = await importFile(file);
  // The same definition may be exported by name and in a list; two that share a name are refused by open().
  const found = new Set(Object.values(module).flat().filter(isDefinition));
  if (found.size > 0) return [...found];
  const names = Object.keys(module);
  const exported = names.length === 0 ? "nothing" : `${names.join(", ")}, and none of it is a definition`;
  throw invalid(`${file} exports ${exported}: ${advice}`, { details: { path: file, exports: names } });
}

/** Runs a command that needs a user's file and has an answer. What the file left open (a timer, a connection) does not keep
 *  the program from ending, whatever became of the command. */
export async function withDefinitions(path: string, run: (use: AnyJob[]) => Promise<void>): Promise<void> {
  try {
    // The schedules of the file are not its business: they are written by a program that works.
    await run((await loadDefinitions(path)).filter((each) => each.kind === "job"));
  } finally {
    systemClock.after(500, () => process.exit());
  }
}

async function importFile(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (cause) {
    const { type, message, trace } = describeError(cause);
    // The first place in a file, of this module or of one that it imports.
    const [, place] = /(?:file:\/\/)(\/[^\s()]+?:\d+(?::\d+)?)/.exec(trace ?? "") ?? [];
    const where = place === undefined ? "" : ` (${decodeURI(place)})`;
    throw invalid(`${file} cannot be loaded: ${type}: ${message}${where}`, { cause, details: { path: file, trace } });
  }
}

// Known by its shape, because the file may use another copy of the package than this program.
function isDefinition(value: unknown): value is Definition {
  if (typeof value !== "object" || value === null) return false;
  const { kind, name, options, indexes } = value as Record<string, unknown>;
  if (typeof name !== "string") return false;
  if (kind === "entity" || kind === "relation") return Array.isArray(indexes);
  return (kind === "job" || kind === "schedule") && typeof options === "object";
}
