// Answers as the library gives them: a time is a text on the wire and a number here. Only where the answer's own fields are times;
// what is the user's (params, payloads, documents) stays as it is.
import { named, times } from "./times.ts";

/** `1` is a time, a text names another of these, [x] is a list of them, "*" is what stands under any other name. */
export type Times = 1 | string | readonly [Times] | { readonly [name: string]: Times };

/** The answer of a verb, or one item of its stream, which belongs to the caller alone: it is changed in place. */
export function readAnswer(verb: string, answer: unknown): unknown {
  return read(answer, times[verb]);
}

function read(value: unknown, at: Times | undefined): unknown {
  if (at === undefined || value === null) return value;
  if (at === 1) return typeof value === "string" ? Date.parse(value) : value;
  if (typeof at === "string") return read(value, named[at]);
  if (typeof value !== "object" || value === null) return value;
  if (isList(at)) return Array.isArray(value) ? value.map((each: unknown) => read(each, at[0])) : value;
  const found = value as Record<string, unknown>;
  for (const name of Object.keys(found)) found[name] = read(found[name], Object.hasOwn(at, name) ? at[name] : at["*"]);
  return found;
}

function isList(at: Times): at is readonly [Times] {
  return Array.isArray(at);
}
