// Which files of a folder were imported by which, so that a file that was edited, and all that import it, can be loaded
// anew while the others stay as they are. Node keeps a module for good under its address, so a new version gets a new one.
import { statSync } from "node:fs";
import { registerHooks } from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";

export type Modules = {
  /** Looks which files have changed, and gives them and all that import them a new address. Returns their paths. */
  renew(): string[];
};

type Known = { stamp: string; version: number; readonly importers: Set<string> };

export function trackModules(folder: string): Modules {
  const known = new Map<string, Known>();

  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const path = pathIn(folder, resolved.url);
      if (path === undefined) return resolved;
      let module = known.get(path);
      if (module === undefined) known.set(path, (module = { stamp: stampOf(path), version: 0, importers: new Set() }));
      const importer = pathIn(folder, context.parentURL ?? "");
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
  };
}

// Packages are not edited.
function pathIn(folder: string, url: string): string | undefined {
  if (!url.startsWith("file:")) return undefined;
  const address = new URL(url);
  address.search = "";
  const path = fileURLToPath(address);
  return path.startsWith(folder + sep) && !path.includes(`${sep}node_modules${sep}`) ? path : undefined;
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? "" : `${stats.mtimeNs} ${stats.size} ${stats.ino}`;
}
