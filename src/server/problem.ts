// Errors as callers of the server see them: problem+json with the codes of the library. What only the owner of the machine should
// know (stacks, paths, statements) stays here.
import { tellable } from "../access/tellable.ts";
import { asDaybookError, describeError, errorCodes, warnOf, type ErrorCode } from "../core/error.ts";
import type { Logger } from "../open/log.ts";

export type Problem = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly details?: Readonly<Record<string, unknown>>;
};

/** A refusal that HTTP has a status of its own for, such as 413. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: ErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** Who is refused for now may try again so much later. */
const retryAfterSeconds = "1";

export function problemOf(error: unknown): { readonly problem: Problem; readonly headers: Record<string, string> } {
  if (error instanceof HttpRefusal) return refusalOf(error);
  const { code, message, details } = tellable(error);
  const { status } = errorCodes[code];
  const problem = {
    ...plain(status, code, message),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  };
  return { problem, headers: status === 503 ? { "retry-after": retryAfterSeconds } : {} };
}

function refusalOf({ status, code, message, headers }: HttpRefusal): ReturnType<typeof problemOf> {
  const later = status === 429 || status === 503 ? { "retry-after": retryAfterSeconds } : {};
  return { problem: plain(status, code, message), headers: { ...later, ...headers } };
}

function plain(status: number, code: ErrorCode, detail: string): Problem {
  return { type: `urn:daybook:error:${code}`, title: errorCodes[code].meaning, status, code, detail };
}

export function problemResponse(error: unknown, more: Readonly<Record<string, string>> = {}): Response {
  const { problem, headers } = problemOf(error);
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...more, ...headers, "content-type": "application/problem+json", "cache-control": "no-store" },
  });
}

/** Says what went wrong on our side where its owner reads it, with what the caller is not told. */
export function tellFailure(log: Logger | undefined, error: unknown, request: string): void {
  if (error instanceof HttpRefusal) return;
  const { code, message } = asDaybookError(error);
  // The caller is told of all others, and the access log says their status.
  if (!tellable(error).isKept && code !== "unknown_outcome") return;
  if (log === undefined) {
    // The caller is told nothing of a defect, so it must not be lost.
    if (code === "internal") warnOf("DAYBOOK_SERVER", `the request ${request} failed`, error);
    return;
  }
  const { trace } = describeError(error);
  log.error({ event: "http.failed", request, code, trace }, message);
}
