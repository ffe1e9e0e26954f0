// PostgreSQL's SQLSTATEs and the driver's network errors in the book's words.
import { DaybookError, isDaybookError, type ErrorCode } from "../../core/error.ts";

const byState: Record<string, [ErrorCode, string]> = {
  "23505": ["conflict", "another transaction was first"],
  "25006": [
    "forbidden",
    "in a read, use book.write instead; elsewhere the server (a standby?) or the role may only read",
  ],
  "25P03": ["timeout", "the server ended a transaction that waited between two statements for too long"],
  "25P04": ["timeout", "the server ended a transaction that took too long"],
  "28000": ["unauthorized", "check the user and its pg_hba entry"],
  "28P01": ["unauthorized", "check the user and the password"],
  "3D000": ["not_found", "create the database first"],
  "3F000": ["not_found", "the schema does not exist"],
  "40001": ["busy", "concurrent transactions kept getting in the way: try again"],
  "40P01": ["busy", "concurrent transactions kept getting in the way: try again"],
  "42501": ["forbidden", "grant the user the right"],
  "53100": ["full", "the server's disk is full: free some space"],
  "55P03": ["busy", "another transaction holds the lock: try again"],
  "57014": ["timeout", "the statement was cancelled"],
  "57P05": ["unavailable", "the server ended a session that was idle for too long: try again"],
};

const byClass: Record<string, [ErrorCode, string]> = {
  "08": ["unavailable", "the connection was lost: try again"],
  "0A": ["invalid", "the server cannot do that: write the statement in another way"],
  "20": ["invalid", "check the function that the statement calls"],
  "21": ["invalid", "check the statement"],
  "22": ["invalid", "check the value"],
  "23": ["invalid", "the value breaks a rule of the table"],
  "25": ["invalid", "the transaction does not allow it"],
  "2B": ["invalid", "something else depends on it"],
  "2D": ["invalid", "the transaction begins and ends with book.write"],
  "2F": ["invalid", "check the function that the statement calls"],
  "38": ["invalid", "check the function that the statement calls"],
  "39": ["invalid", "check the function that the statement calls"],
  "42": ["invalid", "check the statement"],
  "44": ["invalid", "the row does not belong to the view"],
  "53": ["unavailable", "the server has no room: raise its limits or use fewer connections"],
  "54": ["invalid", "the statement or its values are too large for the server"],
  "55": ["invalid", "what it names is not in a state that allows it"],
  "57": ["unavailable", "the server is starting or shutting down: try again"],
  "58": ["unavailable", "the server's disk failed"],
  P0: ["invalid", "a function of the database refused it"],
  XX: ["internal", "the server itself failed or its data are damaged: look at its log"],
};

const noServer: [ErrorCode, string] = ["unavailable", "is the server running there?"];
const unexpected: [ErrorCode, string] = ["internal", "the server said something that daybook does not expect"];

export function fromPostgresError(error: unknown, location: string): unknown {
  if (isDaybookError(error) || !(error instanceof Error)) return error;
  if (isUnreadableFile(error)) {
    return new DaybookError("invalid", `${error.message} (${location}): check the file that the URL names`, {
      cause: error,
    });
  }
  const state = stateOf(error);
  const [code, advice] = byState[state] ?? byClass[state.slice(0, 2)] ?? (state === "" ? noServer : unexpected);
  const what = state === "" ? "" : `PostgreSQL ${state}, `;
  return new DaybookError(code, `${messageOf(error)} (${what}${location}): ${advice}`, {
    cause: error,
    details: { sqlstate: state, ...(isStale(error) ? { stale: true } : {}) },
  });
}

// The driver reads certificates and keys while it connects. A socket that is not there is refused by "connect" instead.
function isUnreadableFile(error: Error): boolean {
  const { syscall, code } = error as NodeJS.ErrnoException;
  return syscall === "open" && code !== undefined;
}

// A statement was prepared before a newer version changed the columns of its answer. The server has no SQLSTATE for it.
function isStale(error: Error): boolean {
  return stateOf(error) === "0A000" && (error as { routine?: unknown }).routine === "RevalidateCachedQuery";
}

/** The statement was prepared before its table changed: it works when it is prepared anew. */
export function isStalePlan(error: unknown): boolean {
  return isDaybookError(error) && error.details["stale"] === true;
}

/** The server ended the statement: its time was over, or it was asked to. */
export function isCancelled(error: unknown): boolean {
  return sqlstate(error) === "57014";
}

/** Worth running the unit again: it lost against a concurrent one, and nothing of it was kept. */
export function isConflictingTransaction(error: unknown): boolean {
  const state = sqlstate(error);
  return state === "40001" || state === "40P01";
}

/** The connection is gone, or is no good any more: what it prepared is stale. What was not yet being committed is
 *  undone; of what was, only the server knows. */
export function isConnectionLost(error: unknown): boolean {
  const state = sqlstate(error);
  if (state === undefined) return false;
  return state === "" || state.startsWith("08") || /^57P0[1235]$/.test(state) || isStalePlan(error);
}

function sqlstate(error: unknown): string | undefined {
  if (!isDaybookError(error)) return undefined;
  const state = error.details["sqlstate"];
  return typeof state === "string" ? state : undefined;
}

// SQLSTATEs have five characters and a digit among them; the system's own codes (EPIPE, ECONNREFUSED) have none.
function stateOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : "";
}

// A refused connection to a name with two addresses is an AggregateError with an empty message.
function messageOf(error: Error): string {
  if (error.message !== "") return error.message;
  return error instanceof AggregateError ? error.errors.map((each: Error) => each.message).join("; ") : error.name;
}
