// Which of the user's files were imported by which, so that a file that was edited, and all that import it, can be loaded
// anew while the others stay as they are. Node keeps a module for good under its address, so a new version gets a new one.
import { statSync } from "node:fs";
import { registerHooks } from "node:module";
import { dirname, sep } from "node:path";
import { fileURLToPath } from "node:url";

export type Modules = {
  /** Looks which files have changed, and gives them and all that import them a new address. Returns their paths. */
  renew(): string[];
  /** The folders of all files that were imported. */
  folders(): string[];
};

type Known = { stamp: string; version: number; readonly importers: Set<string> };

/** Packages are not edited, and a second copy of this one would know nothing of what the first one does. */
const own = dirname(import.meta.dirname) + sep;

/** From now on. */
export function trackModules(): Modules {
  const known = new Map<string, Known>();

  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const path = pathOf(resolved.url);
      if (path === undefined) return resolved;
      let module = known.get(path);
      if (module === undefined) known.set(path, (module = { stamp: stampOf(path), version: 0, importers: new Set() }));
      const importer = pathOf(context.parentURL ?? "");
      if (importer !== undefined) module.importers.add(importer);
      return module.version === 0 ? resolved : { ...resolved, url: `${resolved.url}?v=${module.version}` };
    },
  });

  return {
    renew() {
      const changed = new Set<string>();
      const add = (path: string): void => {
        if (changed.has(path)) return;
        changed.add(path);
        for (const importer of known.get(path)?.importers ?? []) add(importer);
      };
      for (const [path, module] of known) {
        const stamp = stampOf(path);
        if (stamp === module.stamp) continue;
        module.stamp = stamp;
        add(path);
      }
      for (const path of changed) {
        const module = known.get(path);
        if (module !== undefined) module.version++;
      }
      return [...changed];
    },
    folders: () => [...new Set([...known.keys()].map((path) => dirname(path)))],
  };
}

function pathOf(url: string): string | undefined {
  if (!url.startsWith("file:")) return undefined;
  const address = new URL(url);
  address.search = "";
  const path = fileURLToPath(address);
  return path.startsWith(own) || path.includes(`${sep}node_modules${sep}`) ? undefined : path;
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? "" : `${stats.mtimeNs} ${stats.size} ${stats.ino}`;
}
