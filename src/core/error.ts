import { inspect } from "node:util";
import { brand, DaybookError, type ErrorOptions } from "./daybook-error.ts";
import { limits } from "./limits.ts";
import { storableText } from "./quote.ts";

export { DaybookError, errorCodes, type ErrorCode, type ErrorOptions } from "./daybook-error.ts";

/** Makes, and does not throw, the most common error: `throw invalid("…")`. */
export function invalid(message: string, options?: ErrorOptions): DaybookError {
  return new DaybookError("invalid", message, options);
}

/** The two next most common, with what they are about. */
export function conflict(message: string, details: Record<string, unknown>): DaybookError {
  return new DaybookError("conflict", message, { details });
}
export function notFound(message: string, details: Record<string, unknown>): DaybookError {
  return new DaybookError("not_found", message, { details });
}

export function isDaybookError(value: unknown): value is DaybookError {
  return Error.isError(value) && attempt(() => Reflect.get(value, brand)) === true;
}

/** The error itself when it is ours, else an `internal` one with the original as its cause. */
export function asDaybookError(value: unknown): DaybookError {
  if (isDaybookError(value)) return value;
  return new DaybookError("internal", describeError(value).message, { cause: value });
}

/** For what is given as a list: of a thousand, the one that is refused must be findable. */
export function itemOf(what: string, index: number): (error: unknown) => never {
  return (error) => {
    if (!isDaybookError(error)) throw error;
    const { code, message, details } = error;
    const options = { cause: error, details: { ...details, index } };
    throw new DaybookError(code, `${what} ${index} of the list: ${message}`, options);
  };
}

export type ErrorDescription = { type: string; message: string; trace: string | null };

/**
 * Describes whatever user code threw, in text that can be stored. It never throws, also for an object whose getters
 * do. Only messages and stacks are taken: other properties of errors are known to carry tokens and whole requests.
 */
export function describeError(value: unknown): ErrorDescription {
  const type = Error.isError(value) ? (readText(value, "name") ?? "Error") : value === null ? "null" : typeof value;
  const message = Error.isError(value) ? (readText(value, "message") ?? "") : preview(value);
  const trace = traceOf(value);
  return {
    type: storableText(type, limits.nameBytesMax),
    message: storableText(message, limits.errorMessageBytesMax),
    trace: trace === null ? null : storableText(trace, limits.errorTraceBytesMax),
  };
}

/** Warns of a failure that must not stop what goes on. */
export function warnOf(code: string, what: string, error: unknown): void {
  const { message, trace } = describeError(error);
  const detail = trace === null ? {} : { detail: trace };
  process.emitWarning(`${what}: ${message}`, { type: "DaybookWarning", code, ...detail });
}

/** The stack, followed by those of its causes; a few, since a chain of causes may be a circle. */
function traceOf(value: unknown): string | null {
  const stacks: string[] = [];
  for (let error = value; Error.isError(error) && stacks.length < 5; error = attempt(() => readCause(error))) {
    stacks.push(readText(error, "stack") ?? "(no stack)");
  }
  return stacks.length === 0 ? null : stacks.join("\nCaused by: ");
}

function readCause(error: unknown): unknown {
  return Error.isError(error) ? error.cause : undefined;
}

function readText(error: object, key: string): string | undefined {
  const text = attempt(() => Reflect.get(error, key));
  return typeof text === "string" ? text : undefined;
}

function preview(value: unknown): string {
  if (typeof value === "string") return value;
  // inspect does not call getters or the traps of a proxy, but a class may bring its own way to be inspected.
  const text = attempt(() => inspect(value, { depth: 2, breakLength: Infinity, maxStringLength: 1000 }));
  return typeof text === "string" ? text : `a thrown ${typeof value} that cannot be described`;
}

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** A place in a user's file. An error from the write queue, a thread or the server names none; the functions below add it. Its text is made only when it is read, which is when something failed. */
export type Place = { readonly stack?: string };

/** The frames below `verb`. It costs about a microsecond, so verbs of the hot path call `calledFrom` instead, after they failed.
 *  This one is for operations that must be named although they did not fail, because the user's function does not await them. */
export function placeOf(verb: (...args: never[]) => unknown, frames = 1): Place {
  const place = {};
  const { stackTraceLimit } = Error;
  // A program may have frozen its built-in objects; then the limit stays as it is.
  Reflect.set(Error, "stackTraceLimit", frames);
  Error.captureStackTrace(place, verb);
  Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  return place;
}

/** Adds to our error the frames of the caller that awaits the failing verb. */
export function calledFrom(error: unknown): unknown {
  return isDaybookError(error) && !namesUser(error.stack) ? calledAt(error, new Error("caller")) : error;
}

/** Adds the place of the verb to our error, unless the error names a place of the user's already. */
export function calledAt(error: unknown, place: Place): unknown {
  if (!isDaybookError(error) || namesUser(error.stack)) return error;
  const frames = framesOf(place.stack).filter(isUsers);
  if (frames.length > 0) error.stack = [error.stack, ...frames].join("\n");
  return error;
}

/** A place as text: the file, the line and the column. */
export function showPlace({ stack }: Place): string | undefined {
  const frame = framesOf(stack).find(isUsers);
  const place =
    frame === undefined ? undefined : /(?:\(|at (?:async )?)((?:file:\/\/|\/|\w:\\).+:\d+:\d+)\)?$/.exec(frame)?.[1];
  return place?.replace(/^file:\/\//, "");
}

/** The folder of all rooms. */
const ours = import.meta.url.slice(0, import.meta.url.lastIndexOf("/core/") + 1);

function namesUser(stack: string | undefined): boolean {
  return framesOf(stack).some(isUsers);
}

// A program may replace stacks by something other than text.
function framesOf(stack: unknown): string[] {
  return (typeof stack === "string" ? stack : "").split("\n").filter((line) => line.startsWith("    at "));
}

function isUsers(frame: string): boolean {
  return !frame.includes(ours) && !frame.includes("node:") && !frame.includes("<anonymous>)");
}
