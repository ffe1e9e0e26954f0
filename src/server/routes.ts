// The routes of the HTTP API, made from the table of verbs. Nothing here knows a verb by name.
import { readRoute, type Route } from "../verbs/route.ts";
import { everyVerb } from "../verbs/table.ts";
import type { Verb } from "../verbs/verb.ts";
import { aliases, type Alias } from "./aliases.ts";

export type VerbRoute = Route & {
  /** `jobs.cancel`: how answers' schemas and clients name it. */
  readonly key: string;
  readonly verb: Verb;
};

/** Those without a place first: `/events/replay` is written out, and `/events/{id}` would take it as well. */
export async function everyRoute(): Promise<VerbRoute[]> {
  const routes = (await everyVerb()).flatMap(([key, verb]) => {
    const route = readRoute(verb);
    return route === undefined ? [] : [{ ...route, key, verb }];
  });
  return routes.toSorted((a, b) => a.inPath.length - b.inPath.length);
}

export type AliasRoute = VerbRoute & { readonly alias: Alias };

/** The same verbs below other paths. The tenant in the path is whose it is, and no field. */
export function aliasRoutes(routes: readonly VerbRoute[]): AliasRoute[] {
  return aliases.flatMap((alias) => {
    const meant = routes.find(({ key }) => key === alias.key);
    const route = meant === undefined ? undefined : readRoute({ ...meant.verb, http: `${alias.method} ${alias.path}` });
    if (meant === undefined || route === undefined) return [];
    return [
      { ...route, key: meant.key, verb: meant.verb, alias, inPath: route.inPath.filter((name) => name !== "tenant") },
    ];
  });
}

/** As the router writes it: `/jobs/:id/cancel`. */
export function patternOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
