// Dotted names inside a payload.
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";

export function pathOf(path: string): readonly string[] {
  if (typeof path !== "string") throw invalid(`path ${quote(path)} must be a string, such as "state.level"`);
  if (path === "") return [];
  const segments = path.split(".");
  if (segments.includes("") || segments.length > limits.jsonDepthMax) {
    throw invalid(`path ${quote(path)} is not 1 to ${limits.jsonDepthMax} names with one dot between them`);
  }
  return segments;
}

/** Undefined when there is no such value. Only what the payload itself holds counts, nothing it inherits. */
export function valueAt(payload: unknown, path: readonly string[]): unknown {
  let value = payload;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** Whether two values are the same JSON. A missing value is the same as a missing one only. */
export function samePart(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  return toJson(a) === toJson(b);
}
