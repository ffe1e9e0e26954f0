// PostgreSQL's SQLSTATEs and the driver's network errors in the book's words.
import { DaybookError, isDaybookError, type ErrorCode } from "../../core/error.ts";

const byState: Record<string, [ErrorCode, string]> = {
  "23505": ["conflict", "somebody was first"],
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
};

const byClass: Record<string, [ErrorCode, string]> = {
  "08": ["unavailable", "the connection was lost: try again"],
  "22": ["invalid", "check the value"],
  "23": ["invalid", "the value breaks a rule of the table"],
  "25": ["invalid", "the transaction does not allow it"],
  "42": ["invalid", "check the statement"],
  "53": ["unavailable", "the server has no room: raise its limits or use fewer connections"],
  "57": ["unavailable", "the server is starting or shutting down: try again"],
  "58": ["unavailable", "the server's disk failed"],
};

export function fromPostgresError(error: unknown, location: string): unknown {
  if (isDaybookError(error) || !(error instanceof Error)) return error;
  const state = stateOf(error);
  const [code, advice] = byState[state] ??
    byClass[state.slice(0, 2)] ?? ["unavailable", "is the server running there?"];
  const what = state === "" ? "" : `PostgreSQL ${state}, `;
  return new DaybookError(code, `${messageOf(error)} (${what}${location}): ${advice}`, {
    cause: error,
    details: { sqlstate: state },
  });
}

/** Worth running the unit again: it lost against a concurrent one, and nothing of it was kept. */
export function isConflictingTransaction(error: unknown): boolean {
  const state = sqlstate(error);
  return state === "40001" || state === "40P01";
}

/** The connection is gone. What was not yet being committed is undone; what was, nobody can say. */
export function isConnectionLost(error: unknown): boolean {
  const state = sqlstate(error);
  return state !== undefined && (state === "" || state.startsWith("08") || /^57P0[123]$/.test(state));
}

function sqlstate(error: unknown): string | undefined {
  if (!isDaybookError(error)) return undefined;
  const state = error.details["sqlstate"];
  return typeof state === "string" ? state : undefined;
}

// SQLSTATEs have five characters, the system's own codes (ECONNREFUSED) more.
function stateOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "";
}

// A refused connection to a name with two addresses is an AggregateError with an empty message.
function messageOf(error: Error): string {
  if (error.message !== "") return error.message;
  return error instanceof AggregateError ? error.errors.map((each: Error) => each.message).join("; ") : error.name;
}
