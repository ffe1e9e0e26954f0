// Opens the store that a URL names: a path or `:memory:` is SQLite, `postgres://…` is PostgreSQL.
import { fileURLToPath } from "node:url";
import { systemClock, type Clock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { createIds, systemRandom, type Ids, type Random } from "../core/id.ts";
import { quote } from "../core/quote.ts";
import type { Migration } from "./migrate.ts";
import type { Dialect } from "./sql.ts";
import type { Durability, Fault } from "./sqlite/connection.ts";
import { openSqlite } from "./sqlite/sqlite-store.ts";
import type { Store } from "./store.ts";
import { resolve } from "node:path";

export type StoreOptions = {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  /** By which others are waited for: another process, a connection, the server. Real time, whatever `clock` is; tests of these
   *  very waits replace it. */
  readonly waitClock: Clock;
  /** False: refuse a book whose schema is not up to date, and never make a new one. */
  readonly migrate?: boolean | undefined;
  /** True: nothing is written, and a file that may not be written can be looked at. */
  readonly readOnly?: boolean | undefined;
  /** SQLite only: `full` (default) survives power loss, `normal` survives a crash of the process. */
  readonly durability?: Durability | undefined;
  /** PostgreSQL only: the schema that holds the book's tables; default `daybook`. */
  readonly schema?: string | undefined;
  /** PostgreSQL only: how many pooled connections, besides the writer, the listener and the heart. */
  readonly connections?: number | undefined;
  /** Called around each statement; tests throw or kill from it. */
  readonly fault?: Fault | undefined;
};

export async function openStore(
  url: string,
  migrations: readonly Migration[],
  options: Partial<StoreOptions> = {},
): Promise<Store> {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const ids = options.ids ?? createIds(clock, random);
  const waitClock = options.waitClock ?? systemClock;
  const readOnly = options.readOnly === true;
  const complete: StoreOptions = { ...options, clock, waitClock, random, ids, ...(readOnly ? { migrate: false } : {}) };
  const where = parseLocation(url);
  refuseIdle(where.dialect, options);
  const store = await openWhere(where, migrations, complete);
  return readOnly ? { ...store, write: () => Promise.reject(isReadOnly()) } : store;
}

async function openWhere(where: Where, migrations: readonly Migration[], options: StoreOptions): Promise<Store> {
  if (where.dialect === "sqlite") return openSqlite(where.path, migrations, options);
  const { openPostgres } = await import("./postgres/postgres-store.ts");
  return openPostgres(where.url, migrations, options);
}

function isReadOnly(): DaybookError {
  return new DaybookError("forbidden", "the book was opened with readOnly, so nothing is written: open it without");
}

type Where = { dialect: "sqlite"; path: string } | { dialect: "postgres"; url: string };

export function parseLocation(url: string): Where {
  if (typeof url !== "string" || url.trim() === "" || url.includes("\0")) {
    throw invalid(`${quote(url)} names no book: give a file path, ":memory:" or postgres://…`);
  }
  if (/^postgres(ql)?:\/\//i.test(url)) return { dialect: "postgres", url };
  if (/^file:\/\//i.test(url)) return { dialect: "sqlite", path: pathOf(url) };
  // A single letter is a drive of Windows.
  const scheme = /^[a-z][a-z0-9+.-]+:(?:\/\/)?/i.exec(url)?.[0];
  if (scheme !== undefined) {
    throw invalid(
      `"${scheme}" is not supported: give a file path, file:///…, ":memory:" or postgres://…. ` +
        "A file whose name has a colon is written with its folder: ./…",
    );
  }
  return { dialect: "sqlite", path: url };
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw invalid(`${quote(url)} names no file of this machine: write file:///folder/name`, { cause: error });
  }
}

// An option that does nothing would be believed to do something.
function refuseIdle(dialect: Dialect, { schema, connections, durability }: Partial<StoreOptions>): void {
  const idle = dialect === "sqlite" ? { schema, connections } : { durability };
  const [name] = Object.entries(idle).find(([, value]) => value !== undefined) ?? [];
  if (name === undefined) return;
  const place =
    dialect === "sqlite" ? "on PostgreSQL, and this one is a file" : "in a file, and this one is on PostgreSQL";
  throw invalid(`"${name}" is for books ${place}: leave it out`);
}

// Where files are kept that belong to the book and are too big for it.

/** Beside a file book; else in the folder in which the program works. It is made when the first file is. */
export function filesFolder(url: string, given: string | undefined): string {
  if (given !== undefined) {
    if (typeof given === "string" && given !== "" && !given.includes("\0")) return resolve(given);
    throw invalid(`files is ${quote(given)}: give the path of a folder`);
  }
  const where = parseLocation(url);
  return resolve(where.dialect === "sqlite" && where.path !== ":memory:" ? `${where.path}-files` : ".daybook/files");
}
