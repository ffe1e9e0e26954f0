// One file, one name. SQLite keeps the log of a file beside the name by which it was opened, so a file that is open under two
// names has two logs, and each loses what the other wrote. A second hard link is seen before the file is touched
// (book-file.ts). A second path to the same file (a bind mount of the file alone, or one that was renamed while it was open)
// is not, so the file itself says where it is used: in which folder, by the folder's own number, and under which name. A process that
// comes from elsewhere moves in only when no other has the file open.
import { closeSync, lstatSync, openSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DaybookError } from "../../core/error.ts";
import { openConnection, readValue, type Connection } from "./connection.ts";
import { isDenied } from "./sqlite-error.ts";

/** "Dybk" as SQLite's application id: what tells a book from another program's database. */
export const applicationId = 0x4479626b;

/** The one path of a file, through all symbolic links, also of one that is not there yet. */
export function realPathOf(path: string): string {
  let full = resolve(path);
  for (let links = 0; links < linksMax; links++) {
    try {
      return realpathSync.native(full);
    } catch {
      const leadsTo = linkOf(full);
      if (leadsTo === undefined) return join(realFolderOf(full), basename(full));
      full = resolve(dirname(full), leadsTo);
    }
  }
  return full;
}

const linksMax = 40;

function linkOf(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

// A folder that is not there is refused later, by its own name.
function realFolderOf(path: string): string {
  try {
    return realpathSync.native(dirname(path));
  } catch {
    return dirname(path);
  }
}

/** Where a file is used. A folder that is mounted twice has one number, and so the log of its files. The number of its disk is left
 *  out, because it may be another one after each start of the machine. */
export function placeOf(location: string): string {
  const { ino } = statSync(dirname(location), { bigint: true });
  return `${ino}/${basename(location)}`;
}

/** Every book has it, also one in memory, which has no place: one schema is enough. */
export const placeTable = `create table if not exists daybook_place (
  id integer primary key check (id = 1),
  place text not null
) strict`;

/** Makes the file, for this user alone, unless it is there. */
function makeFile(location: string): void {
  try {
    closeSync(openSync(location, "wx", 0o600));
  } catch {
    // It is there, or it cannot be made, and then SQLite says so.
  }
}

/** Writes into the file that it is used here from now on. It is busy while another connection has it open. */
export function moveIn(location: string, place: string): void {
  makeFile(location);
  alone(location, (connection) => {
    // With the mark of a book, because a file that has a table and no mark is another program's.
    connection.script(`begin immediate; pragma application_id = ${applicationId}; ${placeTable}`);
    connection.run({
      text: "insert into daybook_place (id, place) values (1, ?) on conflict (id) do update set place = excluded.place",
      params: [place],
    });
    connection.exec("commit");
  });
}

/** Busy while another connection has the file open: what is looked at under another name lacks what is in the log of the first. A process that may not write the
 *  file cannot ask. A file with a log at hand must not be asked: the only connection moves the log into the file when it closes. */
export function refuseInUse(location: string): void {
  try {
    alone(location, (connection) => readValue(connection, "pragma user_version"));
  } catch (error) {
    if (!isDenied(error)) throw error;
  }
}

function alone(location: string, run: (connection: Connection) => void): void {
  using connection = openConnection(location, { exclusive: true });
  run(connection);
}

export function readPlace(connection: Connection): string | null {
  const made = connection.get({ text: "select 1 as made from sqlite_schema where name = 'daybook_place'", params: [] });
  if (made === undefined) return null;
  const row = connection.get({ text: "select place from daybook_place", params: [] }) as { place: string } | undefined;
  return row?.place ?? null;
}

export function usedElsewhere(location: string, cause: unknown): DaybookError {
  return new DaybookError(
    "conflict",
    `${location} was used under another name (as a bind mount of the file, before it was moved or copied), and another program has it open. ` +
      "Each name has its own log, so writes would be lost: close the other program once, or mount its folder instead of the file",
    { cause },
  );
}
