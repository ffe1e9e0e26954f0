// A condition is data, so that the same words work in the library, over HTTP and on the command line:
//
//   { op: "and", of: [{ op: "eq", at: { side: "value", path: ["status"] }, value: "paid" }, … ] }
//
// Everything that is compared is text, a number or a boolean. Null and missing are one thing, which only isNull and
// isNotNull ask for. What has another type than what it is compared with simply does not match.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { type Path, checkSegments } from "../define/field-index.ts";

export type Scalar = string | number | boolean;

/** Where to look: in the document, in that of an endpoint, or at a key. */
export type Side = "value" | "from" | "to" | "key" | "fromKey" | "toKey" | "instanceKey";
export type Place = { readonly side: Side; readonly path: Path };

type Ordered = "lt" | "lte" | "gt" | "gte";
type Textual = "startsWith" | "endsWith" | "contains";

export type Condition =
  | { readonly op: "eq" | "ne"; readonly at: Place; readonly value: Scalar }
  | { readonly op: Ordered; readonly at: Place; readonly value: string | number }
  | { readonly op: Textual; readonly at: Place; readonly value: string }
  | { readonly op: "in" | "notIn"; readonly at: Place; readonly value: readonly Scalar[] }
  | { readonly op: "isNull" | "isNotNull"; readonly at: Place }
  /** Of an array: whether `where` holds for one of its items, whose places are seen from the item. */
  | { readonly op: "any"; readonly at: Place; readonly where: Condition }
  | { readonly op: "and"; readonly of: readonly Condition[] }
  | { readonly op: "or"; readonly of: readonly Condition[] }
  | { readonly op: "not"; readonly of: Condition };

export type Op = Condition["op"];

export const ops = [
  ...(["eq", "ne", "lt", "lte", "gt", "gte", "in", "notIn", "startsWith", "endsWith", "contains"] as const),
  ...(["isNull", "isNotNull", "any", "and", "or", "not"] as const),
] satisfies readonly Op[];

const sides: readonly Side[] = ["value", "from", "to", "key", "fromKey", "toKey", "instanceKey"];

/** All of them hold; none given: everything matches. */
export function and(...conditions: readonly Condition[]): Condition {
  return checkCondition({ op: "and", of: conditions });
}

/** One of them holds; none given: nothing matches. */
export function or(...conditions: readonly Condition[]): Condition {
  return checkCondition({ op: "or", of: conditions });
}

export function not(condition: Condition): Condition {
  return checkCondition({ op: "not", of: condition });
}

/** Reads a condition that came from anywhere. */
export function checkCondition(given: unknown, depth = 0): Condition {
  if (depth > limits.conditionDepthMax) {
    throw invalid(`a condition is nested deeper than ${limits.conditionDepthMax} levels: write it flatter`);
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid(`a condition is ${quote(given)}: write one as { op, at, value }`);
  }
  const { op, of, at, value, where } = given as Record<string, unknown>;
  switch (op) {
    case "and":
    case "or":
      if (!Array.isArray(of)) throw invalid(`"${op}" takes a list of conditions`);
      return { op, of: of.map((each) => checkCondition(each, depth + 1)) };
    case "not":
      return { op, of: checkCondition(of, depth + 1) };
    case "any":
      return { op, at: checkField(at), where: checkItemCondition(checkCondition(where, depth + 1)) };
    case "isNull":
    case "isNotNull":
      return { op, at: checkPlace(at) };
    case "eq":
    case "ne":
      return { op, at: checkPlace(at), value: checkScalar(value, op) };
    case "in":
    case "notIn":
      if (!Array.isArray(value)) throw invalid(`"${op}" takes a list: ${op}([1, 2])`);
      return { op, at: checkPlace(at), value: value.map((each) => checkScalar(each, op)) };
    case "lt":
    case "lte":
    case "gt":
    case "gte":
      return { op, at: checkPlace(at), value: checkOrdered(value, op) };
    case "startsWith":
    case "endsWith":
    case "contains":
      if (typeof value !== "string") throw invalid(`"${op}" compares texts, not ${quote(value)}`);
      return { op, at: checkPlace(at), value: checkText(value, op) };
    default:
      throw invalid(`${quote(op)} is not known to conditions: ${ops.join(", ")}`);
  }
}

/** All that a question asks is one statement. */
export function checkConditions(conditions: readonly Condition[]): readonly Condition[] {
  if (countParts(conditions) > limits.conditionsMax) {
    throw invalid(`more than ${limits.conditionsMax} conditions in one question: a list of values is one, with "in"`);
  }
  return conditions;
}

/** Once, when it is asked: the words that a question is made of come one by one. */
export function checkBytes(conditions: readonly Condition[]): void {
  const bytes = Buffer.byteLength(JSON.stringify(conditions));
  if (bytes <= limits.questionBytesMax) return;
  throw invalid(
    `the conditions of one question take ${bytes} bytes, and ${limits.questionBytesMax} at most: ask in parts, with fewer values each`,
  );
}

function countParts(conditions: readonly Condition[]): number {
  return conditions.reduce((sum, each) => {
    if (each.op === "and" || each.op === "or") return sum + countParts(each.of);
    if (each.op === "not") return sum + countParts([each.of]);
    return sum + (each.op === "any" ? 1 + countParts([each.where]) : 1);
  }, 0);
}

function checkPlace(given: unknown): Place {
  const { side = "value", path = [] } = (typeof given === "object" && given !== null ? given : {}) as {
    side?: unknown;
    path?: unknown;
  };
  const known = sides.find((each) => each === side);
  if (known === undefined) throw invalid(`${quote(side)} is no side of a record: ${sides.join(", ")}`);
  if (!Array.isArray(path)) throw invalid("a path is a list of names, from the outside in");
  if (known.toLowerCase().endsWith("key") && path.length > 0) throw invalid("a key has no fields");
  return { side: known, path: checkSegments(path, "a condition") };
}

function checkField(given: unknown): Place {
  const place = checkPlace(given);
  if (place.side.toLowerCase().endsWith("key")) throw invalid("a key is a text and has no items");
  return place;
}

// Inside an item there is only the item.
function checkItemCondition(condition: Condition): Condition {
  if (condition.op === "and" || condition.op === "or") condition.of.forEach(checkItemCondition);
  else if (condition.op === "not") checkItemCondition(condition.of);
  else if (condition.at.side !== "value") throw invalid(`inside "any" only the item itself can be asked about`);
  return condition;
}

function checkScalar(value: unknown, op: string): Scalar {
  if (value === null || value === undefined) {
    const instead = op === "ne" || op === "notIn" ? "isNotNull()" : "isNull()";
    throw invalid(`"${op}" does not compare with ${value === null ? "null" : "undefined"}: use ${instead} instead`);
  }
  if (typeof value === "boolean") return value;
  if (typeof value === "string") return checkText(value, op);
  if (typeof value === "number") return checkNumber(value, op);
  throw invalid(`"${op}" compares texts, numbers and booleans, not ${quote(value)}: name the fields inside one by one`);
}

function checkOrdered(value: unknown, op: string): string | number {
  if (typeof value === "string") return checkText(value, op);
  if (typeof value === "number") return checkNumber(value, op);
  throw invalid(`"${op}" compares texts and numbers, not ${quote(value)}`);
}

function checkNumber(value: number, op: string): number {
  if (!Number.isFinite(value)) throw invalid(`"${op}" does not compare with ${value}: no document holds it`);
  return value === 0 ? 0 : value;
}

function checkText(value: string, op: string): string {
  if (!value.isWellFormed() || value.includes("\0")) {
    throw invalid(`"${op}" got a text with a lone surrogate or U+0000: no document holds it`);
  }
  return value;
}

// Conditions without a database: for live queries, which look at one changed document, and for results that are grouped.
// It means the same as the SQL; a test holds the two against each other.

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
