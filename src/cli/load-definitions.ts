// The definitions that a user's files declare: a module that exports them, and the config of the project. Node itself strips
// the types of a TypeScript file, so there is no build.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isDefinition, readConfig } from "../config.ts";
import { systemClock } from "../core/clock.ts";
import { DaybookError, describeError, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { nearest } from "../core/suggest.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { Definition } from "../rooms.ts";

const advice = 'export them, one by one or as a list: export const greet = job("greet", { … })';
const configNames = ["daybook.config.ts", "daybook.config.js"];

/** Where definitions come from; either may be left out. */
export type Sources = { readonly module?: string | undefined; readonly config?: string | undefined };

/** All that the module and the config declare. At least one of them must be there. */
export async function loadDefinitions({ module, config }: Sources): Promise<Definition[]> {
  const configured = await loadConfig(config);
  if (module !== undefined) return [...new Set([...(await loadModule(module)), ...(configured ?? [])])];
  if (configured !== undefined && configured.length > 0) return configured;
  const why = configured === undefined ? `there is no ${configNames[0]} here` : "the config declares nothing";
  throw invalid(`nothing to run: ${why}, so name the module that exports your definitions`);
}

/** Runs a command that needs a user's file and has an answer. What the file left open (a timer, a connection) does not keep
 *  the program from ending, whatever became of the command. */
export async function withDefinitions(sources: Sources, run: (use: AnyJob[]) => Promise<void>): Promise<void> {
  try {
    await run(jobsOf(await loadDefinitions(sources)));
  } finally {
    systemClock.after(500, () => process.exit());
  }
}

/** The same for a command that can do without: it is given none when there is no config. */
export async function withConfig(config: string | undefined, run: (use: AnyJob[]) => Promise<void>): Promise<void> {
  const found = await loadConfig(config);
  if (found === undefined) return run([]);
  try {
    await run(jobsOf(found));
  } finally {
    systemClock.after(500, () => process.exit());
  }
}

/** The job of that name; `from` says where it was looked for. */
export function pickJob(definitions: readonly AnyJob[], name: string, from: string): AnyJob {
  const found = definitions.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = definitions.map((each) => each.name);
  const near = nearest(name, names);
  const hint = near === undefined ? `it defines ${names.join(", ") || "none"}` : `did you mean ${quote(near)}?`;
  throw invalid(`${from} does not define the job ${quote(name)}: ${hint}`, { details: { name, names } });
}

// The schedules of a file are not the business of a command with an answer: they are written by a program that works.
function jobsOf(definitions: readonly Definition[]): AnyJob[] {
  return definitions.filter((each) => each.kind === "job");
}

/** Undefined when none is named and none is here. */
async function loadConfig(given: string | undefined): Promise<Definition[] | undefined> {
  const path = given ?? configNames.find((name) => statSync(resolve(name), { throwIfNoEntry: false })?.isFile());
  if (path === undefined) return undefined;
  const file = checkFile(path, "name the config of your project");
  const module = await importFile(file);
  if (!("default" in module))
    throw invalid(`${file} has no default export: export default { use: […], commands: { … } }`);
  return readConfig(file, module["default"]);
}

async function loadModule(path: string): Promise<Definition[]> {
  const file = checkFile(path, "name the module that exports your definitions");
  const module = await importFile(file);
  // The same definition may be exported by name and in a list; two that share a name are refused by open().
  const found = new Set(Object.values(module).flat().filter(isDefinition));
  if (found.size > 0) return [...found];
  const names = Object.keys(module);
  const exported = names.length === 0 ? "nothing" : `${names.join(", ")}, and none of it is a definition`;
  throw invalid(`${file} exports ${exported}: ${advice}`, { details: { path: file, exports: names } });
}

function checkFile(path: string, what: string): string {
  const file = resolve(path);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new DaybookError("not_found", `there is no file ${file}`, { details: { path: file } });
  if (!stats.isFile()) throw invalid(`${file} is not a file: ${what}`);
  return file;
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
