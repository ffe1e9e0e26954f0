// SQLite's result codes in the book's words. The useful number is `errcode`; the message alone is not enough.
import { fileURLToPath } from "node:url";
import { DaybookError, isDaybookError, type ErrorCode } from "../../core/error.ts";

type SqliteError = Error & { errcode: number };

const codes: Record<number, [ErrorCode, string]> = {
  1: ["invalid", "check the statement"],
  5: ["busy", "another process holds the file: try again, or end that process"],
  6: ["busy", "another statement holds the table: try again"],
  7: ["unavailable", "there was not enough memory"],
  8: ["forbidden", "in a read, use book.write instead; elsewhere check the permissions of the file and its folder"],
  9: ["timeout", "the statement was interrupted"],
  10: ["unavailable", "the disk failed to read or write: check it before going on"],
  11: ["incompatible", "the file is damaged: restore a backup"],
  13: ["full", "the disk is full: free some space, nothing was half-written"],
  14: ["unavailable", "check that the folder exists and may be written"],
  18: ["invalid", "the value is too large"],
  19: ["invalid", "the value breaks a rule of the table"],
  20: ["invalid", "the value has the wrong type for its column"],
  23: ["forbidden", "the statement is not allowed here"],
  25: ["invalid", "the statement has fewer parameters than it was given"],
  26: ["incompatible", "the file is not a SQLite database"],
};

// Extended codes of SQLITE_CONSTRAINT that mean "another row was first", which is a conflict rather than bad input.
const uniqueCodes = new Set([1555, 2067, 2579]);

export function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && typeof (error as Partial<SqliteError>).errcode === "number";
}

export function fromSqliteError(error: unknown, location: string): unknown {
  if (isDaybookError(error)) return error;
  // A number above 2^53, or a value node:sqlite cannot bind, is an error without a result code.
  if (error instanceof RangeError || (error instanceof TypeError && "code" in error)) {
    return new DaybookError("invalid", error.message, { cause: error });
  }
  if (!isSqliteError(error)) return error;
  const primary = error.errcode & 0xff;
  const [code, advice] = codes[primary] ?? ["internal", "this is a bug in daybook: please report it"];
  return new DaybookError(
    uniqueCodes.has(error.errcode) ? "conflict" : code,
    `${error.message} (SQLite ${error.errcode}, ${pathOf(location)}): ${advice}`,
    { cause: error, details: { sqlite: error.errcode } },
  );
}

// A file that is only looked at is opened by a URL, which no message shows.
function pathOf(location: string): string {
  if (location.endsWith("vfs=memdb")) return ":memory:";
  return location.startsWith("file:///") ? fileURLToPath(location.replace(/\?.*$/, "")) : location;
}

export function isBusy(error: unknown): boolean {
  return isDaybookError(error) && error.code === "busy";
}

/** The system lets this process neither write the file nor make others beside it. */
export function isDenied(error: unknown): boolean {
  const number = isDaybookError(error) ? Number(error.details["sqlite"]) & 0xff : 0;
  return number === 8 || number === 14;
}
