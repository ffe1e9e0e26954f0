// What a program lists in `use`. Anything else there would be passed over in silence, and its jobs would wait for ever.
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { Definition } from "./rooms.ts";

export function checkUse(use: unknown): readonly Definition[] {
  if (Array.isArray(use)) return (use as readonly unknown[]).map(checkDefinition);
  const single = isDefinition(use) ? "one definition, without its list" : quote(use);
  throw invalid(`"use" is ${single}: give a list of definitions, such as [sendReceipt]`);
}

function checkDefinition(each: unknown, index: number): Definition {
  if (isDefinition(each)) return each;
  const what = Array.isArray(each) ? "a list" : quote(each);
  throw invalid(`use[${index}] is ${what}, which is no definition: ${adviceFor(each, index)}`);
}

function adviceFor(each: unknown, index: number): string {
  // Of two files that import each other, one sees the exports of the other before they are there.
  if (each === undefined) return "look for a misspelt export, or for files that import each other";
  if (Array.isArray(each)) return `put what is in it into the list, as ...list does for use[${index}]`;
  if (typeof each === "object" && each !== null && Object.values(each).some(isDefinition)) {
    return "it holds some, as a whole module does; list them, as ...Object.values(it) does";
  }
  return "give what job(), schedule(), listener(), entity(), app() … made";
}

/** Known by its shape, because a user's file may use another copy of the package than this program. */
export function isDefinition(value: unknown): value is Definition {
  if (typeof value !== "object" || value === null) return false;
  const { kind, key, name, options, setup, topic, topics, indexes } = value as Record<string, unknown>;
  if (kind === "app") return typeof key === "string" && typeof setup === "function";
  if (kind === "event") return typeof topic === "string";
  if (kind === "listener" || kind === "live") return typeof name === "string" && Array.isArray(topics);
  if (kind === "entity" || kind === "relation") return typeof name === "string" && Array.isArray(indexes);
  return (kind === "job" || kind === "schedule") && typeof name === "string" && typeof options === "object";
}
