// The one class of errors and the one table of their codes. It stands alone, because a browser has it too (src/client).
export type ErrorCode =
  | "invalid"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "busy"
  | "unavailable"
  | "full"
  | "incompatible"
  | "timeout"
  | "unknown_outcome"
  | "closed"
  | "internal";

/** The one table from codes to HTTP statuses and to exit codes of the command line. */
export const errorCodes: Readonly<Record<ErrorCode, { status: number; exit: number; meaning: string }>> = {
  invalid: { status: 400, exit: 2, meaning: "The request is wrong; repeating it unchanged cannot help." },
  unauthorized: { status: 401, exit: 3, meaning: "Nobody was identified; a valid token is needed." },
  forbidden: { status: 403, exit: 3, meaning: "The caller is known but may not do this." },
  not_found: { status: 404, exit: 4, meaning: "There is no such thing in this tenant." },
  conflict: { status: 409, exit: 5, meaning: "The state has changed or forbids this; read again, then decide." },
  busy: { status: 503, exit: 6, meaning: "Another process holds the database; try again in a moment." },
  unavailable: { status: 503, exit: 7, meaning: "The database or a remote service cannot be reached." },
  full: { status: 507, exit: 8, meaning: "There is no room left on the disk or in the database." },
  incompatible: { status: 500, exit: 9, meaning: "The database, schema or runtime has a version we cannot use." },
  timeout: { status: 504, exit: 10, meaning: "It took longer than allowed and was stopped." },
  unknown_outcome: { status: 500, exit: 11, meaning: "It may or may not have happened; look before repeating." },
  closed: { status: 503, exit: 12, meaning: "The book is closed or closing." },
  internal: { status: 500, exit: 1, meaning: "A defect in Daybook or an error that nothing else describes." },
};

export type ErrorOptions = { cause?: unknown; details?: Record<string, unknown> };

// A registered symbol, so that an error made by another copy of the package is still known as ours.
export const brand = Symbol.for("daybook.error");

/** The ten frames that are usual may all be ours, and the one that helps is the user's. */
const framesMin = 40;

export class DaybookError extends Error {
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    const { stackTraceLimit } = Error;
    // A program may have frozen its built-in objects, or want no stacks at all.
    if (stackTraceLimit > 0) Reflect.set(Error, "stackTraceLimit", Math.max(stackTraceLimit, framesMin));
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
    this.code = code;
    this.details = options.details ?? {};
  }
}
// On the prototype these do not show up when an error is logged.
Object.defineProperty(DaybookError.prototype, "name", { value: "DaybookError", writable: true, configurable: true });
Object.defineProperty(DaybookError.prototype, brand, { value: true });
