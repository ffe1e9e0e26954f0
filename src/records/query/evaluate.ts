// Conditions without a database: for live queries, which look at one changed document, and for results that are grouped.
// It means the same as the SQL; a test holds the two against each other.
import type { Path } from "../field-index.ts";
import type { Condition, Place, Scalar } from "./condition.ts";

/** Finds what stands at a place; undefined when nothing does. */
export type LookUp = (place: Place) => unknown;

export function evaluate(condition: Condition, lookUp: LookUp): boolean {
  switch (condition.op) {
    case "and":
      return condition.of.every((each) => evaluate(each, lookUp));
    case "or":
      return condition.of.some((each) => evaluate(each, lookUp));
    case "not":
      return !evaluate(condition.of, lookUp);
    default:
      return evaluateLeaf(condition, lookUp(condition.at));
  }
}

function evaluateLeaf(condition: Exclude<Condition, { of: unknown }>, found: unknown): boolean {
  switch (condition.op) {
    case "eq":
      return found === condition.value;
    case "ne":
      return found !== condition.value;
    case "in":
      return condition.value.includes(found as Scalar);
    case "notIn":
      return !condition.value.includes(found as Scalar);
    case "isNull":
      return found === null || found === undefined;
    case "isNotNull":
      return found !== null && found !== undefined;
    case "any":
      return Array.isArray(found) && found.some((item) => evaluate(condition.where, ({ path }) => follow(item, path)));
    case "startsWith":
      return typeof found === "string" && found.startsWith(condition.value);
    case "endsWith":
      return typeof found === "string" && found.endsWith(condition.value);
    case "contains":
      return typeof found === "string" && found.includes(condition.value);
    case "lt":
      return typeof found === typeof condition.value && compare(found as string, condition.value) < 0;
    case "lte":
      return typeof found === typeof condition.value && compare(found as string, condition.value) <= 0;
    case "gt":
      return typeof found === typeof condition.value && compare(found as string, condition.value) > 0;
    case "gte":
      return typeof found === typeof condition.value && compare(found as string, condition.value) >= 0;
  }
}

/** What stands at a path of a document. Arrays have no names. */
export function follow(value: unknown, path: Path): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== "object" || at === null || Array.isArray(at) || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

/** Numbers by size, texts by code point as the databases do. */
function compare(one: string | number, other: string | number): number {
  if (typeof one === "number" || typeof other === "number") return Number(one) - Number(other);
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
