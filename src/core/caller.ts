// Where in a user's own files a verb was called. An error from the write queue, a thread or the server has no frame of the
// user's; these functions give it one.
import { isDaybookError } from "./error.ts";

/** A place in a user's file. Its text is made only when it is read, which is when something failed. */
export type Place = { readonly stack?: string };

/** The frames below `verb`. It costs about a microsecond, so verbs of the hot path call `calledFrom` instead, after they failed.
 *  This one is for operations that must be named although they did not fail, because nobody awaits them. */
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
