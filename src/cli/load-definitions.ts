// The definitions that a user's files declare: a module that exports them, a folder of such modules, and the config of the
// project. Node itself strips the types of a TypeScript file, so there is no build.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { withInstances, type AnyApp } from "../apps/define.ts";
import { readConfig, type Configured } from "../define/config.ts";
import { systemClock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { nearest } from "../core/suggest.ts";
import type { Verb } from "../verbs/verb.ts";
import type { AnyJob } from "../jobs/define.ts";
import type { AnyRecordType } from "../records/define/definition.ts";
import type { Definition } from "../open/use.ts";
import { definitionsIn, importFile, loadFolder, type Folder, type Problem } from "./apps-folder.ts";

const advice = 'export them, one by one or as a list: export const greet = job("greet", { … })';
const configNames = ["daybook.config.ts", "daybook.config.js"];

/** Where definitions come from; either may be left out. */
export type Sources = { readonly module?: string | undefined; readonly config?: string | undefined };

export type Loaded = {
  readonly use: readonly Definition[];
  /** What could not be loaded, while the rest runs. */
  readonly problems: readonly Problem[];
  /** The folder that it came from, if it did. */
  readonly folder: Folder | undefined;
  /** Gives an app the instances that the config has for it. */
  readonly configure: (app: AnyApp) => AnyApp;
  /** What the config says of calls and of the zone. */
  readonly calls: Configured["calls"];
  readonly zone: Configured["zone"];
  /** What the config says of retention. */
  readonly retention: Configured["retention"];
};

/** All that the module or folder and the config declare. At least one of them must be there. */
export async function loadDefinitions({ module, config }: Sources, { watch = false } = {}): Promise<Loaded> {
  const configured = await loadConfig(config);
  const configure = (app: AnyApp): AnyApp => {
    const instances = configured?.apps.get(app.key);
    return instances === undefined ? app : withInstances(app, instances);
  };
  const folder = module !== undefined && isFolder(module) ? await loadFolder(resolve(module), { watch }) : undefined;
  if (watch && folder === undefined) throw invalid("--watch is for a folder of apps: name one");
  const found = folder?.definitions ?? (module === undefined ? [] : await loadModule(module));
  const use = [...new Set([...found, ...(configured?.definitions ?? [])])];
  const calls = configured?.calls;
  // Whoever says where calls may go wants them sent, whatever else there is to run.
  if (module === undefined && use.length === 0 && calls === undefined) {
    const why = configured === undefined ? `there is no ${configNames[0]} here` : "the config declares nothing";
    throw invalid(`nothing to run: ${why}, so name the module that exports your definitions`);
  }
  return {
    use: use.map((each) => (each.kind === "app" ? configure(each) : each)),
    problems: [...(folder?.problems ?? []), ...unknownApps(use, configured)],
    folder,
    configure,
    calls,
    zone: configured?.zone,
    retention: configured?.retention,
  };
}

// It may be that its file could not be loaded, so it is said and not thrown.
function unknownApps(use: readonly Definition[], configured: Configured | undefined): Problem[] {
  const known = use.flatMap((each) => (each.kind === "app" ? each.key : []));
  return [...(configured?.apps.keys() ?? [])]
    .filter((key) => !known.includes(key))
    .map((key) => {
      const near = nearest(key, known);
      const hint = near === undefined ? "" : `: did you mean "${near}"?`;
      return { file: null, message: `the config has instances of the app ${quote(key)}, which nothing defines${hint}` };
    });
}

/** What a command with an answer may use of a user's file. Schedules, listeners and apps are the business of a program that works. */
type Used = AnyJob | AnyRecordType;
export type UsedKind = "job" | "record";

/** Runs a command that needs a user's file and has an answer. What the file left open (a timer, a connection) does not keep
 *  the program from ending, whatever became of the command. */
export async function withDefinitions(
  sources: Sources,
  kind: UsedKind,
  run: (use: Used[]) => Promise<void>,
): Promise<void> {
  try {
    await run(usedOf((await loadDefinitions(sources)).use, kind));
  } finally {
    systemClock.after(500, () => process.exit());
  }
}

/** The same for a command that can do without: it is given none when there is no config. */
export async function withConfig(
  config: string | undefined,
  kind: UsedKind,
  run: (use: Used[]) => Promise<void>,
): Promise<void> {
  const found = await loadConfig(config);
  if (found === undefined) return run([]);
  try {
    await run(usedOf(found.definitions, kind));
  } finally {
    systemClock.after(500, () => process.exit());
  }
}

/** For a command that runs many verbs: the jobs and records that are declared, and none where there is no config. */
export async function usableDefinitions({ module, config }: Sources): Promise<readonly Used[]> {
  const found =
    module === undefined
      ? ((await loadConfig(config))?.definitions ?? [])
      : (await loadDefinitions({ module, config })).use;
  return [...usedOf(found, "job"), ...usedOf(found, "record")];
}

/** Those of a verb's kind, and the ones that its input names among them. */
export function needed(
  { definitions: need, definitionKind, definitionsOf }: Verb,
  input: Readonly<Record<string, unknown>>,
  definitions: readonly Used[],
): readonly Used[] {
  if (need === undefined) return [];
  const kind = definitionKind ?? "job";
  const found = usedOf(definitions, kind);
  const from = "what this process was started with (--from, --config)";
  if (need === "must") for (const name of definitionsOf?.(input) ?? []) pickDefinition(found, { kind, name, from });
  return found;
}

function usedOf(definitions: readonly Definition[], kind: UsedKind): Used[] {
  if (kind === "job") return definitions.filter((each) => each.kind === "job");
  return definitions.filter((each) => each.kind === "entity" || each.kind === "relation");
}

type Looked = { readonly kind: UsedKind; readonly name: string; readonly from: string };

/** The definition of that name; `from` says where it was looked for. */
export function pickDefinition(definitions: readonly Used[], { kind, name, from }: Looked): Used {
  const found = definitions.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = definitions.map((each) => each.name);
  const near = nearest(name, names);
  const hint = near === undefined ? `it defines ${names.join(", ") || "none"}` : `did you mean ${quote(near)}?`;
  throw invalid(`${from} does not define the ${kind} ${quote(name)}: ${hint}`, { details: { name, names } });
}

/** The config that is named, or is here. */
export function findConfig(given: string | undefined): string | undefined {
  return given ?? configNames.find((name) => statSync(resolve(name), { throwIfNoEntry: false })?.isFile());
}

/** Undefined when none is named and none is here. */
export async function loadConfig(given: string | undefined): Promise<Configured | undefined> {
  const path = findConfig(given);
  if (path === undefined) return undefined;
  const file = checkFile(path, "name the config of your project");
  const module = await importFile(file);
  if (!("default" in module))
    throw invalid(`${file} has no default export: export default { use: […], commands: { … } }`);
  return readConfig(file, module["default"]);
}

async function loadModule(path: string): Promise<readonly Definition[]> {
  const file = checkFile(path, "name the module that exports your definitions");
  const module = await importFile(file);
  // The same definition may be exported by name and in a list; two that share a name are refused by open().
  const found = definitionsIn(module);
  if (found.length > 0) return found;
  const names = Object.keys(module);
  const exported = names.length === 0 ? "nothing" : `${names.join(", ")}, and none of it is a definition`;
  throw invalid(`${file} exports ${exported}: ${advice}`, { details: { path: file, exports: names } });
}

function isFolder(path: string): boolean {
  return statSync(resolve(path), { throwIfNoEntry: false })?.isDirectory() === true;
}

function checkFile(path: string, what: string): string {
  const file = resolve(path);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new DaybookError("not_found", `there is no file ${file}`, { details: { path: file } });
  if (!stats.isFile()) throw invalid(`${file} is not a file: ${what}`);
  return file;
}
