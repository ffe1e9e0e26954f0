// Backups that the book keeps in a folder of its own, beside its other files: whoever asks for one from elsewhere names no path.
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { checkCount } from "../core/count.ts";
import { asDaybookError, DaybookError } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { BackupReport } from "../storage/backup.ts";

export type BackupRecord = {
  /** The name of its file, which says when it was made. */
  readonly name: string;
  readonly bytes: number;
  readonly createdAt: number;
};

export type MadeBackup = BackupRecord & {
  readonly tables: number;
  /** Older ones that made room for it. */
  readonly removed: readonly string[];
};

export type Backups = {
  /** Copies the book into its folder of backups while it is in use, and checks the copy. With `keep`, so many of the latest stay.
   *
   *  ```ts
   *  const { name, removed } = await book.backups.create({ keep: 7 });
   *  ``` */
  create(options?: { readonly keep?: number }): Promise<MadeBackup>;
  /** The latest first. */
  list(): Promise<BackupRecord[]>;
};

type Parts = {
  /** The folder of the book's own files. */
  readonly files: string;
  readonly now: () => number;
  backup(path: string): Promise<BackupReport>;
};

export function backupVerbs({ files, now, backup }: Parts): Backups {
  const folder = join(files, "backups");

  async function list(): Promise<BackupRecord[]> {
    const names = (await readdir(folder).catch(nothingThere)) ?? [];
    const latestFirst = names
      .filter((name) => isBackup.test(name))
      .toSorted()
      .toReversed();
    const found = await Promise.all(
      latestFirst.map(async (name) => {
        const file = await stat(join(folder, name)).catch(nothingThere);
        return file === undefined ? [] : [{ name, bytes: file.size, createdAt: Math.round(file.mtimeMs) }];
      }),
    );
    return found.flat();
  }

  // Whoever asked for a backup from elsewhere knows its name, and is not told where the folder is.
  async function copy(name: string): Promise<BackupReport> {
    try {
      return await backup(join(folder, name));
    } catch (error) {
      const { code, message, details } = asDaybookError(error);
      throw new DaybookError(code, message.replaceAll(`${folder}${sep}`, ""), { cause: error, details });
    }
  }

  return {
    async create(options = {}) {
      refuseUnknown(options, ["keep"], "backups.create");
      if (options.keep !== undefined) checkCount(options.keep, "keep", 1, keepMax);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const name = `${new Date(now()).toISOString().replaceAll(/[:.]/g, "-")}.db`;
      const { bytes, tables } = await copy(name);
      const old = options.keep === undefined ? [] : (await list()).slice(options.keep);
      for (const each of old) await rm(join(folder, each.name), { force: true });
      return { name, bytes, createdAt: now(), tables, removed: old.map((each) => each.name) };
    },
    list,
  };
}

/** Only what was made here is listed, and removed. */
const isBackup = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\.db$/;
const keepMax = 10_000;

/** A file that another process removed while this one looked is none. */
function nothingThere(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
