// Where the fields of a verb stand in an HTTP request: what the path names stands in the path, the rest in the query of a GET and in
// the body of everything else.
import { fieldsOf, type Verb } from "./verb.ts";

export type Route = {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `/jobs/{id}/cancel`, without the prefix of the version. */
  readonly path: string;
  readonly inPath: readonly string[];
  readonly inQuery: readonly string[];
  readonly inBody: readonly string[];
};

/** What every route of a verb begins with. */
export const apiPrefix = "/api/v1";

/** Undefined for a verb that only the command line has. */
export function readRoute(of: Verb): Route | undefined {
  if (of.http === undefined || of.local === true) return undefined;
  const [method, path] = of.http.split(" ") as [Route["method"], string];
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const others = fieldsOf(of)
    .map(([name]) => name)
    .filter((name) => !inPath.includes(name));
  return { method, path, inPath, inQuery: method === "GET" ? others : [], inBody: method === "GET" ? [] : others };
}
