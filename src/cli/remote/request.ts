// What a verb and its input are as a request: each field has one place, in the path, else the query of a GET, else the body.
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import type { Field } from "../../verbs/field.ts";
import { readRoute } from "../../verbs/route.ts";
import { nameOf, type Verb } from "../../verbs/verb.ts";
import type { Input } from "../read-input.ts";

export type ServerRequest = {
  readonly method: string;
  /** With its query, below the base of the API. */
  readonly path: string;
  /** JSON; undefined for a GET. */
  readonly body: string | undefined;
  /** The verb was given a key of its own, so it is done once however often it is sent. */
  readonly hasKey: boolean;
};

export function requestOf(verb: Verb, input: Input): ServerRequest {
  const route = readRoute(verb);
  if (route === undefined) throw invalid(`"${nameOf(verb)}" has no route: run it on the book`);
  const { method, inPath } = route;
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segment(String(input[name]), name, verb));
  const rest = Object.entries(input).filter(([name]) => !inPath.includes(name));
  const hasKey = input["idempotencyKey"] !== undefined;
  if (method !== "GET") return { method, path, body: JSON.stringify(Object.fromEntries(rest)), hasKey };
  const query = new URLSearchParams(
    rest.flatMap(([name, value]) => {
      const field = verb.input[name];
      return field === undefined ? [] : textsOf(field, value).map((text): [string, string] => [name, text]);
    }),
  );
  return { method, path: query.size === 0 ? path : `${path}?${query.toString()}`, body: undefined, hasKey };
}

// Encoded or not, an address that has them is another one: the part before is taken away with them.
function segment(text: string, name: string, verb: Verb): string {
  if (text === "." || text === "..") {
    throw invalid(`${name} is ${quote(text)}, which no address can hold: run "${nameOf(verb)}" on the book`);
  }
  return encodeURIComponent(text.toWellFormed());
}

/** What the field reads the value from. */
function textsOf(field: Field, value: unknown): string[] {
  if (field.kind !== "json" && Array.isArray(value)) return value.flatMap((each) => textsOf(field, each));
  if (field.kind !== "json" && value === null) return ["none"];
  return [field.kind !== "json" && typeof value === "string" ? value : JSON.stringify(value)];
}
