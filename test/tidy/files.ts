import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SourceFile } from "./scan.ts";

/** The text files of the repo at `root`: what git tracks or would add, or all of them where there is no git. */
export function repoFiles(root: string): SourceFile[] {
  const paths = gitPaths(root);
  return (paths.length > 0 ? paths : walk(root, "")).sort().flatMap((path) => {
    const text = read(join(root, path));
    return text === undefined || text.includes("\0") ? [] : [{ path, text }];
  });
}

function gitPaths(root: string): string[] {
  try {
    const listing = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      maxBuffer: 64 * 1024 * 1024,
    });
    return listing.split("\0").filter((path) => path !== "");
  } catch {
    // No git, or no repository here: the caller walks the folders instead.
    return [];
  }
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory())
      return ["node_modules", "dist", ".git", ".daybook"].includes(entry.name) ? [] : walk(root, path);
    return entry.isFile() && !/\.(?:log|db|db-wal|db-shm)$/.test(entry.name) ? [path] : [];
  });
}

/** A file that git still tracks may have been deleted, or be a link to a folder. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
