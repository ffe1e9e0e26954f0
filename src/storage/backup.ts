// A backup is a copy made by SQLite itself (VACUUM INTO) while the book is in use: one consistent moment, compact. The
// incremental API would never finish beside a busy writer. The copy is checked before it gets its name, so a file
// with that name is always a whole book.
import { existsSync, rmSync, statSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { DaybookError } from "../core/error.ts";
import { checkBookFile } from "./sqlite/book-file.ts";
import { createReaderThread } from "./sqlite/reader.ts";
import { sql } from "./sql.ts";
import type { Store } from "./store.ts";

export type BackupReport = { readonly path: string; readonly bytes: number; readonly tables: number };

export async function backupBook(
  store: Store,
  path: string,
  options: { overwrite?: boolean } = {},
): Promise<BackupReport> {
  if (store.dialect === "postgres") {
    throw new DaybookError(
      "invalid",
      `a book on PostgreSQL is backed up by its own tools: pg_dump --schema=${store.schema ?? "daybook"}, or pg_basebackup`,
    );
  }
  const target = resolve(path);
  if (existsSync(target) && options.overwrite !== true) {
    throw new DaybookError("conflict", `${target} exists: choose another name, or say overwrite`);
  }
  const folder = statSync(dirname(target), { throwIfNoEntry: false });
  if (folder?.isDirectory() !== true) {
    throw new DaybookError("unavailable", `the folder ${dirname(target)} does not exist: create it first`);
  }
  const unchecked = `${target}.${store.ids()}.partial`;
  try {
    await store.readLong(sql`vacuum into ${unchecked}`);
    const tables = await checkCopy(unchecked);
    await syncFile(unchecked);
    await rename(unchecked, target);
    await syncFile(dirname(target));
    return { path: target, bytes: statSync(target).size, tables };
  } catch (error) {
    rmSync(unchecked, { force: true });
    throw error;
  }
}

async function checkCopy(path: string): Promise<number> {
  if (checkBookFile(path) !== "existing") throw new DaybookError("internal", `the copy ${path} is not a book`);
  const thread = createReaderThread({ location: path, writable: false });
  try {
    const found = (await thread.all({ text: "pragma integrity_check", params: [] })) as { integrity_check: string }[];
    if (found[0]?.integrity_check !== "ok") {
      throw new DaybookError(
        "internal",
        `the copy is damaged: ${found[0]?.integrity_check}. Check the disk, try again`,
      );
    }
    return (await thread.all({ text: "select name from sqlite_schema where type = 'table'", params: [] })).length;
  } finally {
    await thread.close();
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
