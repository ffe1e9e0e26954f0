// Headers as a field: an object of names and texts, or lines of "name: value". A value is never shown, since it may be a token.
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import type { Field } from "./field.ts";

type Headers = { readonly [name: string]: string };

export function headers(about: string, max: number): Field<Headers, false> {
  return {
    kind: "headers",
    maybe: false,
    about,
    metavar: "line",
    schema: {
      type: "object",
      additionalProperties: { type: "string" },
      maxProperties: max,
      "x-one": "header",
      description: about,
    },
    check(value, what) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw invalid(`${what} is no object of names and texts: give { "accept": "text/plain" }`);
      }
      // What is no plain object would count as no headers at all: a Map, Headers, a promise.
      toJson(value, { what, bytesMax: limits.callHeadersMax * limits.callHeaderBytesMax });
      const entries = Object.entries(value);
      if (entries.length > max) throw invalid(`${what} has ${entries.length} names: give at most ${max}`);
      for (const [name, text] of entries) {
        if (typeof text !== "string") throw invalid(`the header ${quote(name)} of ${what} is no text`);
      }
    },
    fromText: (line, what) => read([line], what),
    fromTexts: read,
  };
}

function read(lines: readonly string[], what: string): Headers {
  const found = new Map<string, string>();
  for (const line of lines) {
    const at = line.indexOf(":");
    if (at < 1) throw invalid(`${what} ${quote(line.slice(0, 10))}… is not "name: value"`);
    const name = line.slice(0, at).trim();
    if (found.has(name)) throw invalid(`${what} has ${quote(name)} twice: give it once`);
    found.set(name, line.slice(at + 1).trim());
  }
  return Object.fromEntries(found);
}
