// What a handler returns is kept if it is JSON of a fair size. If not, the work is done all the same: failing it would do it
// again. The run says what was wrong, to its readers and to whoever waits for the result.
import { describeError } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import type { ContextParts, RunState } from "./context.ts";
import type { Ending } from "./outcome.ts";

export function resultJson(result: unknown): Pick<Ending, "result" | "resultRefused"> {
  if (result === undefined) return { result: null };
  try {
    return { result: toJson(result, { what: "result", bytesMax: limits.resultBytesMax }) };
  } catch (error) {
    return { result: null, resultRefused: describeError(error).message };
  }
}

/** Writes into the run's log that its result was not kept. */
export function logRefused(
  { resultRefused }: Pick<Ending, "resultRefused">,
  state: RunState,
  parts: Pick<ContextParts, "now" | "changed">,
): void {
  if (resultRefused == null) return;
  state.logs.push({
    level: "warn",
    message: `the result is not kept: ${resultRefused}`,
    fields: null,
    at: parts.now(),
  });
  parts.changed(state);
}
