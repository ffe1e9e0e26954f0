/** A program that could not be started or did not end well. Its run is recorded with this type. */
export function commandError(message: string, cause?: unknown): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.name = "CommandError";
  return error;
}
