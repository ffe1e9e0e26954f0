// The routes of the HTTP API, made from the table of verbs. Nothing here knows a verb by name.
import { everyVerb } from "../verbs/table.ts";
import type { Verb } from "../verbs/verb.ts";

export type Route = {
  /** `jobs.cancel`: how answers' schemas and clients name it. */
  readonly key: string;
  readonly verb: Verb;
  readonly method: string;
  /** `/jobs/{id}/cancel`, below the base of the API. */
  readonly path: string;
  /** The fields that stand in the path. */
  readonly inPath: readonly string[];
};

export async function everyRoute(): Promise<Route[]> {
  return (await everyVerb()).flatMap(([key, verb]) => routeOf(key, verb) ?? []);
}

/** None for a verb that only the command line has. */
export function routeOf(key: string, verb: Verb, http: string | undefined = verb.http): Route | undefined {
  if (verb.local === true || http === undefined) return undefined;
  const [method = "", path = ""] = http.split(" ");
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  return { key, verb, method, path, inPath };
}

/** As the router writes it: `/jobs/:id/cancel`. */
export function patternOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
