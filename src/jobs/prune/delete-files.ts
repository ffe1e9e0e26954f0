// Takes away the log files that removed rows named. Their rows are gone by then, so nothing here may fail the prune: a file
// that cannot be deleted is left, and is not counted.
import { unlink } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";

/** How many were deleted. Only files that stand in the book's own folder are touched, whatever a row says. */
export async function deleteFiles(folder: string, paths: readonly string[]): Promise<number> {
  const own = paths.filter((path) => isAbsolute(path) && dirname(resolve(path)) === resolve(folder));
  let deleted = 0;
  for (const path of own) {
    try {
      await unlink(path);
      deleted++;
    } catch {
      // It may be gone already, or be on another machine.
    }
  }
  return deleted;
}
