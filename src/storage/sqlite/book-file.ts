// Whether a path may be opened as a book, decided before SQLite touches it: opening the wrong thing must neither
// change it nor leave files beside it.
import { readFileSync, statfsSync, statSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { DaybookError, isDaybookError, type ErrorOptions } from "../../core/error.ts";
import type { AppliedMigration } from "../migrate.ts";
import { sql } from "../sql.ts";
import type { Store } from "../store.ts";
import { openConnection, readValue } from "./connection.ts";
import { appliedMigrations } from "./migrate-sqlite.ts";
import { applicationId, readPlace } from "./place.ts";

export type BookFile = {
  /** Whether the file is a book already (`existing`) or may become one (`new`: missing or empty). */
  readonly kind: "new" | "existing";
  /** The number of the book's newest migration. */
  readonly version: number;
  readonly applied: readonly AppliedMigration[];
  /** Where the file says that it is used (place.ts). */
  readonly place: string | null;
};

const nothingYet: BookFile = { kind: "new", version: 0, applied: [], place: null };

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
  if (stat.nlink > 1) {
    throw new DaybookError(
      "conflict",
      `${path} has ${stat.nlink} names (hard links), and under each it would have its own log, so writes would be lost: ` +
        "remove the other names, or copy the file",
    );
  }
  if (stat.size === 0 || isHalfOfFirstCommit(path)) return nothingYet;
  if (stat.size < pageBytesMin) throw noDatabase(path);
  try {
    return inspectDatabase(path);
  } catch (error) {
    throw inWords(path, error);
  }
}

// Only SQLite opens the file: closing it otherwise would end the locks that this process has on it.
function inWords(path: string, error: unknown): unknown {
  const number = isDaybookError(error) ? error.details["sqlite"] : undefined;
  const options = { cause: error, details: { sqlite: number } };
  if (number === 26) return noDatabase(path, options);
  return number === 14
    ? new DaybookError("unavailable", `${path} cannot be read: check its permissions`, options)
    : error;
}

const journalMagic = "d9d505f920a163d7";
const journalHeaderBytes = 28;

// A process that is killed in the first commit of a file leaves pages in it and a journal that says that it was empty before. SQLite
// empties it again when it opens it for writing, so there is nothing in it. The journal has no locks that reading it could end.
function isHalfOfFirstCommit(path: string): boolean {
  let journal: Buffer;
  try {
    journal = readFileSync(`${path}-journal`);
  } catch {
    return false;
  }
  if (journal.length < journalHeaderBytes || journal.toString("hex", 0, 8) !== journalMagic) return false;
  const pagesBefore = journal.readUInt32BE(16);
  return pagesBefore === 0;
}

// SQLite takes a file of a few bytes for an empty one.
const pageBytesMin = 512;

function noDatabase(path: string, options?: ErrorOptions): DaybookError {
  return new DaybookError("incompatible", `${path} is not a SQLite database (SQLite 26): name another file`, options);
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

/** Refuses what would not fit on the disk, before it begins: a disk that fills up half-way holds up every program on it. */
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

/** What a book holds: a file keeps the pages of what was removed, and they are in no copy of it. */
export async function bytesInUse(store: Pick<Store, "read">): Promise<number> {
  const [found] = await store.read<{ bytes: number }>(
    sql`select (page_count - freelist_count) * page_size as bytes
      from pragma_page_count, pragma_freelist_count, pragma_page_size`,
  );
  return found?.bytes ?? 0;
}

/** How to look at a file that is not to change: SQLite makes nothing beside it and waits for no lock. */
export function unchanging(path: string): string {
  return `${pathToFileURL(path).href}?immutable=1`;
}

/** How to look at a file with its log: the index of the log is read, and what it lacks is kept in memory. Only where there is no index
 *  SQLite makes one. A process that may not write the file never moves its log into it. */
export function withItsLog(path: string): string {
  const readsIndex = statOf(`${path}-shm`) === undefined ? "" : "&readonly_shm=1";
  return `${pathToFileURL(path).href}?mode=ro${readsIndex}`;
}

/** How large the write-ahead log of a file is. */
export function logBytes(path: string): number {
  return statOf(`${path}-wal`)?.size ?? 0;
}

export function hasLog(path: string): boolean {
  return logBytes(path) > 0;
}

// A database is looked at as one that does not change, because opening it otherwise may leave files beside it, even for
// reading. Where the newest is still in its log, that is read as well. Only where that cannot be (the index of the log is
// missing), the file is opened as it is.
function inspectDatabase(path: string): BookFile {
  if (!hasLog(path)) return judge(path, look(unchanging(path)));
  const inFile = attemptLook(unchanging(path));
  if (inFile !== undefined && isOthers(inFile)) return judge(path, inFile);
  const seen = judge(path, attemptLook(withItsLog(path)) ?? look(path));
  // A log that lies here may be older than what was written elsewhere, so the file alone says where it is used.
  return { ...seen, place: (inFile ?? seen).place };
}

type Look = Omit<BookFile, "kind"> & { readonly application: number; readonly tables: number };

function look(location: string): Look {
  using connection = openConnection(location, { readOnly: true, busyMs: 1000 });
  const application = Number(readValue(connection, "pragma application_id"));
  const version = Number(readValue(connection, "pragma user_version"));
  const ours = application === applicationId;
  return {
    application,
    version,
    tables: Number(readValue(connection, "select count(*) from sqlite_schema")),
    applied: ours && version > 0 ? appliedMigrations(connection) : [],
    place: ours ? readPlace(connection) : null,
  };
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

function judge(path: string, { application, tables, ...seen }: Look): BookFile {
  // One that was left before its first migration has its place and nothing else.
  if (application === applicationId) return { kind: seen.version === 0 && tables <= 1 ? "new" : "existing", ...seen };
  if (!isOthers({ application, tables, ...seen })) return nothingYet;
  throw new DaybookError(
    "incompatible",
    `${path} is another program's database: name another file. Your own tables can live in a book, made by tx.sql`,
  );
}
