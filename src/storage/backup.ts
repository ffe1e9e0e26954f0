// A backup is a copy made by SQLite itself (VACUUM INTO) while the book is in use: one consistent moment, compact. The
// incremental API would never finish beside a busy writer. The copy is checked before it gets its name, so a file
// with that name is always a whole book.
import { realpathSync, rmSync, statSync, type Stats } from "node:fs";
import { open, rename } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { DaybookError, invalid, type ErrorCode } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { bytesInUse, inspectBookFile, refuseFullDisk } from "./sqlite/book-file.ts";
import { createReader } from "./sqlite/reader.ts";
import { render, sql, type Sql } from "./sql.ts";
import type { Store } from "./store.ts";

export type BackupReport = { readonly path: string; readonly bytes: number; readonly tables: number };

export async function backupBook(
  store: Store,
  path: string,
  options: { overwrite?: boolean } = {},
  /** Statements that tell the copy that it is one. */
  marks: readonly Sql[] = [],
): Promise<BackupReport> {
  refuseUnknown(options, ["overwrite"], "backup");
  if (store.dialect === "postgres") {
    throw new DaybookError(
      "invalid",
      `a book on PostgreSQL is backed up by its own tools: pg_dump --schema=${store.schema ?? "daybook"}, or pg_basebackup`,
    );
  }
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw invalid(`${quote(path)} names no file: give the path of the copy`);
  }
  const target = resolve(path);
  const unchecked = `${target}.${store.ids()}.partial`;
  try {
    refuseTarget(store, target, options.overwrite === true);
    refuseFullDisk(dirname(target), "the backup", await bytesInUse(store));
    look(`${unchecked}-journal`); // the longest of the names that are needed: the system says here if it is too long
  } catch (error) {
    throw fromFileError(error, target);
  }
  try {
    // SQLite would make it readable for every user of the machine.
    await (await open(unchecked, "wx", look(target)?.mode ?? 0o600)).close();
    await store.readLong(sql`vacuum into ${vacuumTarget(store, unchecked)}`);
    await markCopy(unchecked, marks);
    const tables = await checkCopy(unchecked);
    await syncFile(unchecked);
    // Another program may have opened a book of that name while the copy was made.
    refuseLeftovers(target);
    await rename(unchecked, target);
    await syncFile(dirname(target));
    return { path: target, bytes: statSync(target).size, tables };
  } catch (error) {
    for (const file of [unchecked, `${unchecked}-journal`]) rmSync(file, { force: true });
    throw fromFileError(error, target);
  }
}

/** What SQLite keeps beside a file of that name. */
const besides = ["-wal", "-shm", "-journal"] as const;

function refuseTarget(store: Store, target: string, overwrite: boolean): void {
  if (look(dirname(target))?.isDirectory() !== true) {
    throw new DaybookError("unavailable", `the folder ${dirname(target)} does not exist: create it first`);
  }
  const found = look(target);
  if (found?.isDirectory() === true) throw invalid(`${target} is a folder: name a file inside it`);
  if (found !== undefined && !found.isFile()) throw invalid(`${target} is not a file: name another`);
  if (isOfBook(store, target, found)) throw invalid(`${target} belongs to the book itself: choose another name`);
  if (found !== undefined && !overwrite) {
    throw new DaybookError("conflict", `${target} exists: choose another name, or say overwrite`);
  }
  refuseLeftovers(target);
}

// By its place, and by the file itself: a link to the book has another name.
function isOfBook(store: Store, target: string, found: Stats | undefined): boolean {
  const book = look(store.location);
  if (book === undefined) return false;
  if (found?.ino === book.ino && found.dev === book.dev) return true;
  const place = join(realpathSync(dirname(target)), basename(target));
  const location = realpathSync(store.location);
  return ["", ...besides].some((end) => place === `${location}${end}`);
}

// SQLite would take the log of another database for the copy's own, and play it into the copy when that is opened.
function refuseLeftovers(target: string): void {
  const left = besides.map((end) => `${target}${end}`).find((path) => look(path) !== undefined);
  if (left === undefined) return;
  throw new DaybookError(
    "conflict",
    `${left} belongs to another book of that name, which is open or was not closed: ` +
      "close it, or move it away with what lies beside it, or choose another name",
  );
}

// A book in memory would have its copy in memory too, unless the copy is told where files are.
function vacuumTarget(store: Store, path: string): string {
  if (store.location !== ":memory:") return path;
  return `${pathToFileURL(path).href}?vfs=${process.platform === "win32" ? "win32" : "unix"}`;
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

const byErrno: Record<string, [ErrorCode, string]> = {
  EACCES: ["forbidden", "check the permissions of the folder and the file"],
  EPERM: ["forbidden", "check the permissions of the folder and the file"],
  EROFS: ["forbidden", "its disk is read-only: choose another"],
  ENOSPC: ["full", "free some space"],
  EDQUOT: ["full", "free some space"],
  EISDIR: ["invalid", "name a file inside it"],
  ELOOP: ["invalid", "its links lead in a circle"],
  ENAMETOOLONG: ["invalid", "choose a shorter name"],
};

function fromFileError(error: unknown, target: string): unknown {
  if (error instanceof DaybookError || !(error instanceof Error)) return error;
  const { code: errno } = error as NodeJS.ErrnoException;
  if (errno === undefined) return error;
  const [code, advice] = byErrno[errno] ?? ["unavailable", "check the disk, then try again"];
  return new DaybookError(code, `the backup ${target} cannot be written (${errno}): ${advice}`, { cause: error });
}

async function markCopy(path: string, marks: readonly Sql[]): Promise<void> {
  if (marks.length === 0) return;
  const reader = createReader({ location: path, writable: true });
  try {
    for (const mark of marks) await reader.all(render(mark, "sqlite"));
  } finally {
    await reader.close();
  }
}

async function checkCopy(path: string): Promise<number> {
  if (inspectBookFile(path).kind !== "existing") throw new DaybookError("internal", `the copy ${path} is not a book`);
  const reader = createReader({ location: path, writable: false });
  try {
    const found = (await reader.all({ text: "pragma integrity_check", params: [] })).rows as {
      integrity_check: string;
    }[];
    if (found[0]?.integrity_check !== "ok") {
      throw new DaybookError(
        "internal",
        `the copy is damaged: ${found[0]?.integrity_check}. Check the disk, try again`,
      );
    }
    return (await reader.all({ text: "select name from sqlite_schema where type = 'table'", params: [] })).rows.length;
  } finally {
    await reader.close();
  }
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}
