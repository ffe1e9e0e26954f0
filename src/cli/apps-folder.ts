// A folder of apps: every file of it is a module of its own, and one that cannot be loaded does not keep the others from
// running.
import { readdirSync, statSync } from "node:fs";
import { basename, join, sep } from "node:path";
import { within } from "../apps/setup.ts";
import { systemClock } from "../core/clock.ts";
import { describeError, invalid, type DaybookError } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import type { Definition } from "../open/use.ts";
import { definitionsIn, importFile } from "./import-file.ts";
import { trackModules, type Modules } from "./track-modules.ts";

export type Problem = { readonly file: string | null; readonly message: string };

export type Folder = {
  readonly path: string;
  readonly definitions: readonly Definition[];
  readonly problems: readonly Problem[];
  /** Where the files lie that its own import, as far as they are not in it. */
  elsewhere(): string[];
  /** What has changed since it was last looked at. */
  reload(): Promise<Reloaded[]>;
};

/** A file that was loaded again, is new or is gone. */
export type Reloaded = {
  readonly file: string;
  /** Undefined when it cannot be loaded: what it had defined before goes on as it was. */
  readonly definitions: readonly Definition[] | undefined;
  readonly before: readonly Definition[];
  readonly problems: readonly Problem[];
};

type Entry = { readonly file: string; readonly definitions: readonly Definition[] };

/** With `watch`, what its files import is kept track of, wherever it lies. */
export async function loadFolder(path: string, { watch }: { readonly watch: boolean }): Promise<Folder> {
  const modules = watch ? trackModules() : undefined;
  const entries = new Map<string, Entry>();
  const problems: Problem[] = [];
  for (const file of filesIn(path)) {
    const loaded = await load(file, entries);
    entries.set(file, { file, definitions: loaded.definitions ?? [] });
    problems.push(...loaded.problems);
  }
  const definitions = [...new Set([...entries.values()].flatMap((each) => each.definitions))];
  if (definitions.length === 0 && !watch) throw nothing(path, problems);

  return {
    path,
    definitions,
    problems,
    elsewhere: () => modules?.folders().filter((each) => each !== path && !each.startsWith(path + sep)) ?? [],
    async reload() {
      const files = filesIn(path);
      const changed = changedIn(modules, files, entries);
      const done: Reloaded[] = [];
      for (const file of changed) {
        const before = entries.get(file)?.definitions ?? [];
        entries.delete(file);
        const isThere = files.includes(file);
        const loaded = isThere ? await load(file, entries) : { definitions: [], problems: [] };
        if (isThere) entries.set(file, { file, definitions: loaded.definitions ?? before });
        done.push({ file, before, ...loaded });
      }
      return done;
    },
  };
}

function changedIn(
  modules: Modules | undefined,
  files: readonly string[],
  entries: ReadonlyMap<string, Entry>,
): string[] {
  const renewed = new Set(modules?.renew());
  const fresh = files.filter((file) => !entries.has(file));
  const gone = [...entries.keys()].filter((file) => !files.includes(file));
  return [...new Set([...fresh, ...gone, ...files.filter((file) => renewed.has(file))])];
}

// Tests and declarations lie beside the files that they are about.
function filesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.[cm]?[jt]s$/.test(name) && !/\.(d|test|spec)\.[cm]?ts$|\.(test|spec)\.[cm]?js$/.test(name))
    .filter((name) => !name.startsWith(".") && !name.startsWith("daybook.config."))
    .map((name) => join(folder, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true)
    .toSorted();
}

type LoadedFile = Pick<Reloaded, "definitions" | "problems">;

async function load(file: string, others: ReadonlyMap<string, Entry>): Promise<LoadedFile> {
  try {
    const ms = limits.appSetupMs;
    const late = (): DaybookError => invalid(`${file} cannot be loaded: it takes longer than ${ms} ms`);
    const module = await within(systemClock, ms, importFile(file), late);
    return withoutTaken(file, definitionsIn(module ?? {}), others);
  } catch (error) {
    return { definitions: undefined, problems: [{ file, message: describeError(error).message }] };
  }
}

// One app may be exported by two files; two that share a key are a mistake, and the first of them runs.
function withoutTaken(file: string, found: readonly Definition[], others: ReadonlyMap<string, Entry>): LoadedFile {
  const problems: Problem[] = [];
  const definitions = found.filter((each) => {
    if (each.kind !== "app") return true;
    const isOther = (one: Definition): boolean => one.kind === "app" && one.key === each.key && one !== each;
    const holder = [...others.values()].find((other) => other.definitions.some(isOther));
    if (holder === undefined) return true;
    const message = `${file} defines the app "${each.key}", and so does ${basename(holder.file)}, which is run: rename one`;
    problems.push({ file, message });
    return false;
  });
  return { definitions, problems };
}

function nothing(path: string, problems: readonly Problem[]): Error {
  const [first] = problems;
  if (first !== undefined) return invalid(first.message, { details: { path, problems } });
  return invalid(`no file in ${path} exports an app or another definition: export default app("lights", { … })`);
}
