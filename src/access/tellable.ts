// What a caller from elsewhere may be told of an error. Where the book is, and what the database said, is for the owner of the machine.
import { asDaybookError, errorCodes, type ErrorCode } from "../core/error.ts";

export type Tellable = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The message says more than the caller is told. */
  readonly isKept: boolean;
};

/** Their messages may hold paths, addresses and statements. */
const keptCodes: ReadonlySet<ErrorCode> = new Set(["internal", "unavailable", "full", "incompatible"]);

/** What the database refuses to this process is nothing that its caller lacks. */
const ours: ReadonlySet<ErrorCode> = new Set(["unauthorized", "forbidden", "not_found"]);

/** Details that name this machine. */
const hidden: ReadonlySet<string> = new Set(["path", "file", "sql", "statement", "location", "cause"]);

export function tellable(error: unknown): Tellable {
  const { code, message, details } = asDaybookError(error);
  const isOfDatabase = "sqlite" in details || "sqlstate" in details;
  if (isOfDatabase || keptCodes.has(code)) {
    const told = isOfDatabase && ours.has(code) ? "unavailable" : code;
    return { code: told, message: errorCodes[told].meaning, details: {}, isKept: true };
  }
  const shown = Object.entries(details).filter(([name, value]) => !hidden.has(name) && value !== undefined);
  return { code, message, details: Object.fromEntries(shown), isKept: false };
}
