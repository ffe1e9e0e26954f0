// Whether a path may be opened as a book, decided before SQLite touches it: opening the wrong thing must neither
// change it nor leave files beside it.
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DaybookError } from "../../core/error.ts";
import { openConnection } from "./connection.ts";

/** "Dybk" as SQLite's application id: what tells a book from another program's database. */
export const applicationId = 0x4479626b;

/** Whether the file is a book already (`existing`) or may become one (`new`: missing or empty). */
export function checkBookFile(path: string): "new" | "existing" {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) {
    if (!existsSync(dirname(path))) {
      throw new DaybookError("unavailable", `the folder ${dirname(path)} does not exist: create it first`);
    }
    return "new";
  }
  if (stat.isDirectory()) throw new DaybookError("invalid", `${path} is a folder: name a file inside it`);
  if (stat.size === 0) return "new";
  if (!readHeader(path).startsWith("SQLite format 3\0")) {
    throw new DaybookError("incompatible", `${path} is not a SQLite database: name another file`);
  }
  return readApplication(path);
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

// Asked through SQLite, because a fresh book's header may still be in its WAL.
function readApplication(path: string): "new" | "existing" {
  const connection = openConnection(path, { readOnly: true, busyMs: 1000 });
  try {
    const one = (text: string): number => Number(Object.values(connection.get({ text, params: [] }) as object)[0]);
    if (one("pragma application_id") === applicationId) return "existing";
    if (one("select count(*) from sqlite_schema") === 0 && one("pragma application_id") === 0) return "new";
    throw new DaybookError(
      "incompatible",
      `${path} is another program's database: name another file. Your own tables can live in a book, made by tx.sql`,
    );
  } finally {
    connection.close();
  }
}
