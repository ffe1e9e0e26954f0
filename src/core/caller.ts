// Where in a user's own files a verb was called. An error that arises in the line of writes, in a thread or at the server has no
// frame of the user's; these give it one.
import { isDaybookError } from "./error.ts";

/** A place in a user's file. Its text is made when somebody reads it, which is when something failed. */
export type Place = { readonly stack?: string };

/** The one frame below `verb`, or so many. It costs about a microsecond, so verbs of the hot path ask `calledFrom` instead, once they have
 *  failed; what has to be named although nothing failed, an operation that nobody awaits, is asked here. */
export function placeOf(verb: (...args: never[]) => unknown, frames = 1): Place {
  const place = {};
  const { stackTraceLimit } = Error;
  // A program may have frozen its built-in objects: then as many frames are noted as it wants.
  Reflect.set(Error, "stackTraceLimit", frames);
  Error.captureStackTrace(place, verb);
  Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  return place;
}

/** Adds to our error the frames of whoever awaits the verb that is failing right now. */
export function calledFrom(error: unknown): unknown {
  return isDaybookError(error) && !namesUser(error.stack) ? calledAt(error, new Error("caller")) : error;
}

/** Adds to our error the place of the verb, unless it names a place of the user's already. */
export function calledAt(error: unknown, place: Place): unknown {
  if (!isDaybookError(error) || namesUser(error.stack)) return error;
  const frames = framesOf(place.stack).filter(isUsers);
  if (frames.length > 0) error.stack = [error.stack, ...frames].join("\n");
  return error;
}

/** A place in words: the file, the line and the column. */
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

// A program may make something else of stacks than a text.
function framesOf(stack: unknown): string[] {
  return (typeof stack === "string" ? stack : "").split("\n").filter((line) => line.startsWith("    at "));
}

function isUsers(frame: string): boolean {
  return !frame.includes(ours) && !frame.includes("node:") && !frame.includes("<anonymous>)");
}
