// Whether a path may be opened as a book, decided before SQLite touches it: opening the wrong thing must neither
// change it nor leave files beside it.
import { closeSync, openSync, readSync, statfsSync, statSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { DaybookError } from "../../core/error.ts";
import { openConnection } from "./connection.ts";

/** "Dybk" as SQLite's application id: what tells a book from another program's database. */
export const applicationId = 0x4479626b;

export type BookFile = {
  /** Whether the file is a book already (`existing`) or may become one (`new`: missing or empty). */
  readonly kind: "new" | "existing";
  /** The number of the book's newest migration. */
  readonly version: number;
};

const nothingYet: BookFile = { kind: "new", version: 0 };

/** Refuses what cannot be a book, and looks at what can. */
export function inspectBookFile(path: string): BookFile {
  const stat = statOf(path);
  if (stat === undefined) {
    if (statOf(dirname(path))?.isDirectory() !== true) {
      throw new DaybookError("unavailable", `the folder ${dirname(path)} does not exist: create it first`);
    }
    refuseFullDisk(dirname(path));
    return nothingYet;
  }
  if (stat.isDirectory()) throw new DaybookError("invalid", `${path} is a folder: name a file inside it`);
  if (!stat.isFile()) throw new DaybookError("invalid", `${path} is not a file: name another`);
  if (stat.size === 0) return nothingYet;
  if (!readHeader(path).startsWith("SQLite format 3\0")) {
    throw new DaybookError("incompatible", `${path} is not a SQLite database: name another file`);
  }
  return inspectDatabase(path);
}

export function checkBookFile(path: string): BookFile["kind"] {
  return inspectBookFile(path).kind;
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new DaybookError("unavailable", `${path} cannot be looked at (${code}): check its permissions`, {
      cause: error,
    });
  }
}

/** What an empty book takes, with its journal, and some room to begin with. */
const newBookBytes = 1_048_576;

/** Refuses what would not fit on the disk, before it begins: a disk that fills up half-way holds up everybody on it. */
export function refuseFullDisk(folder: string, what = "a new book", bytes = newBookBytes): void {
  const { bavail, bsize, blocks } = statfsSync(folder);
  const free = bavail * bsize;
  if (blocks === 0 || free >= bytes) return;
  const mb = (each: number): string => `${Math.ceil(each / 1_048_576)} MB`;
  throw new DaybookError(
    "full",
    `the disk of ${folder} has no room for ${what}: it takes about ${mb(bytes)}, and ${mb(free)} are free`,
    { details: { bytes, free } },
  );
}

/** What a book takes on its disk, with its WAL. */
export function bookBytes(path: string): number {
  return ["", "-wal"].reduce((sum, end) => sum + (statOf(`${path}${end}`)?.size ?? 0), 0);
}

function readHeader(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const header = Buffer.alloc(16);
      readSync(file, header, 0, header.length, 0);
      return header.toString("latin1");
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new DaybookError("unavailable", `${path} cannot be read: check its permissions`, { cause: error });
  }
}

// A database is opened as one that cannot change, because opening it otherwise may leave files beside it, even for
// reading. Only where that does not say enough, because the newest is still in the WAL, it is opened as it is.
function inspectDatabase(path: string): BookFile {
  const unchanging = `${pathToFileURL(path).href}?immutable=1`;
  const hasWal = (statOf(`${path}-wal`)?.size ?? 0) > 0;
  if (!hasWal) return judge(path, look(unchanging));
  const inFile = attemptLook(unchanging);
  return judge(path, inFile !== undefined && isOthers(inFile) ? inFile : look(path));
}

type Look = { readonly application: number; readonly version: number; readonly tables: number };

function look(location: string): Look {
  const connection = openConnection(location, { readOnly: true, busyMs: 1000 });
  try {
    const one = (text: string): number => Number(Object.values(connection.get({ text, params: [] }) as object)[0]);
    return {
      application: one("pragma application_id"),
      version: one("pragma user_version"),
      tables: one("select count(*) from sqlite_schema"),
    };
  } finally {
    connection.close();
  }
}

// It may look damaged while another process moves pages from the WAL to the file.
function attemptLook(location: string): Look | undefined {
  try {
    return look(location);
  } catch {
    return undefined;
  }
}

function isOthers({ application, tables }: Look): boolean {
  return application !== applicationId && (application !== 0 || tables > 0);
}

function judge(path: string, seen: Look): BookFile {
  if (seen.application === applicationId) return { kind: "existing", version: seen.version };
  if (!isOthers(seen)) return nothingYet;
  throw new DaybookError(
    "incompatible",
    `${path} is another program's database: name another file. Your own tables can live in a book, made by tx.sql`,
  );
}
