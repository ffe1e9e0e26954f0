// What a handler returns is kept if it is JSON of a fair size. If not, the work is done all the same: failing it would do it
// again. The run's log says what was wrong.
import { describeError } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import type { ContextParts, RunState } from "./context.ts";

export function resultJson(result: unknown, state: RunState, parts: ContextParts): string | null {
  if (result === undefined) return null;
  try {
    return toJson(result, { what: "result", bytesMax: limits.resultBytesMax });
  } catch (error) {
    const message = `the result is not kept: ${describeError(error).message}`;
    state.logs.push({ level: "warn", message, fields: null, at: parts.now() });
    parts.changed(state);
    return null;
  }
}
