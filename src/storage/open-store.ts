// Opens the store that a URL names: a path or `:memory:` is SQLite, `postgres://…` is PostgreSQL.
import { fileURLToPath } from "node:url";
import { createSteadyTime, systemClock, type Clock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { createIds, systemRandom, type Ids, type Random } from "../core/id.ts";
import { quote } from "../core/quote.ts";
import { createKeep } from "../core/remember.ts";
import type { Migration } from "./migrate.ts";
import type { Dialect } from "./sql.ts";
import type { Durability, Fault } from "./sqlite/connection.ts";
import { openSqlite } from "./sqlite/sqlite-store.ts";
import type { EngineStore, Store } from "./store.ts";
import { resolve } from "node:path";

export type StoreOptions = {
  /** Replaces the system's clock, in tests. */
  readonly clock: Clock;
  readonly ids: Ids;
  /** Replaces the system's randomness, in tests. */
  readonly random: Random;
  /** @internal By which the store waits for others: another process, a connection, the server. Real time, whatever `clock` is; tests
   *  of these very waits replace it. */
  readonly waitClock: Clock;
  /** False: refuse a book whose schema is not up to date instead of migrating it, and never make a new one. */
  readonly migrate?: boolean | undefined;
  /** True: only look. No session is written, nothing is migrated or run, every write is refused, and a file that this process
   *  may not write, such as one on a read-only disk, can be opened. */
  readonly readOnly?: boolean | undefined;
  /** SQLite: `"full"` (default) survives power loss; `"normal"` is faster and survives a crash of the process only. */
  readonly durability?: Durability | undefined;
  /** PostgreSQL: the schema that holds the book's tables; default `"daybook"`. */
  readonly schema?: string | undefined;
  /** PostgreSQL: how many pooled connections, besides those that write groups, listen and beat; default 8. */
  readonly connections?: number | undefined;
  /** @internal Called around each statement; tests throw or kill from it. */
  readonly fault?: Fault | undefined;
};

/** What every engine is opened with. */
export type EngineParts = StoreOptions & Pick<Store, "keep" | "time">;

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
  const keep = createKeep();
  const time = createSteadyTime(clock);
  const migrate = readOnly ? false : options.migrate;
  const where = parseLocation(url);
  refuseIdle(where.dialect, options);
  const engine = await openWhere(where, migrations, {
    ...options,
    clock,
    waitClock,
    random,
    ids,
    keep,
    time,
    migrate,
  });
  const store: Store = {
    ...engine,
    clock,
    waitClock,
    random,
    ids,
    keep,
    time,
    readLong: (statement) => engine.readsLong((reader) => reader.all(statement)),
  };
  return readOnly ? { ...store, write: () => Promise.reject(isReadOnly()) } : store;
}

async function openWhere(where: Where, migrations: readonly Migration[], parts: EngineParts): Promise<EngineStore> {
  if (where.dialect === "sqlite") return openSqlite(where.path, migrations, parts);
  const { openPostgres } = await import("./postgres/postgres-store.ts");
  return openPostgres(where.url, migrations, parts);
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
