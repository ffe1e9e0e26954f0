// A condition is data, so that the same words work in the library, over HTTP and on the command line:
//
//   { op: "and", of: [{ op: "eq", at: { side: "value", path: ["status"] }, value: "paid" }, … ] }
//
// Conditions compare texts, numbers and booleans. Null and missing are one thing, which only isNull and isNotNull ask for. A
// value of another type than the one it is compared with does not match.
import { checkCount } from "../../core/count.ts";
import { invalid } from "../../core/error.ts";
import { isObject } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { checkSegments, follow, type Path } from "../define/definition.ts";

export type Scalar = string | number | boolean;

/** Where to look: in the document, in that of an endpoint, or at a key. */
export type Side = "value" | "from" | "to" | "key" | "fromKey" | "toKey" | "instanceKey";
export type Place = { readonly side: Side; readonly path: Path };

type Ordered = "lt" | "lte" | "gt" | "gte";
type Textual = "startsWith" | "endsWith" | "contains";
export type Counted = "eq" | "ne" | Ordered;

/** Along a relation: `out`, from `from` to `to`, or `in`, against it. */
export type Way = "out" | "in";

export type Condition =
  | { readonly op: "eq" | "ne"; readonly at: Place; readonly value: Scalar }
  | { readonly op: Ordered; readonly at: Place; readonly value: string | number }
  | { readonly op: Textual; readonly at: Place; readonly value: string }
  | { readonly op: "in" | "notIn"; readonly at: Place; readonly value: readonly Scalar[] }
  | { readonly op: "isNull" | "isNotNull"; readonly at: Place }
  /** Of an array: whether `where` holds for one of its items. The places in `where` begin at the item. */
  | { readonly op: "any"; readonly at: Place; readonly where: Condition }
  | RelatedCondition
  | { readonly op: "and"; readonly of: readonly Condition[] }
  | { readonly op: "or"; readonly of: readonly Condition[] }
  | { readonly op: "not"; readonly of: Condition };

/** Of an entity, or of an endpoint: how many relations of this name begin there (`in`: end there) for which `where` holds. The places
 *  in `where` are those of the relation. */
export type RelatedCondition = {
  readonly op: "related";
  readonly at: Place;
  readonly relation: string;
  readonly way: Way;
  readonly where: Condition;
  readonly is: Counted;
  readonly count: number;
};

/** An end of a relation. */
export type End = "from" | "to";

export type Op = Condition["op"];

const ops =
  "eq, ne, lt, lte, gt, gte, in, notIn, startsWith, endsWith, contains, isNull, isNotNull, any, related, and, or, not";

const sides: readonly Side[] = ["value", "from", "to", "key", "fromKey", "toKey", "instanceKey"];

/** All of them hold. Without any, everything matches. */
export function and(...conditions: readonly Condition[]): Condition {
  return checkCondition({ op: "and", of: conditions });
}

/** One of them holds. Without any, nothing matches. */
export function or(...conditions: readonly Condition[]): Condition {
  return checkCondition({ op: "or", of: conditions });
}

export function not(condition: Condition): Condition {
  return checkCondition({ op: "not", of: condition });
}

/** Checks a condition that came from anywhere. */
export function checkCondition(given: unknown, depth = 0): Condition {
  if (depth > limits.conditionDepthMax) {
    throw invalid(`a condition is nested deeper than ${limits.conditionDepthMax} levels: write it flatter`);
  }
  if (!isObject(given)) throw invalid(`a condition is ${quote(given)}: write one as { op, at, value }`);
  const { op, of, at, value, where } = given;
  switch (op) {
    case "and":
    case "or":
      if (!Array.isArray(of)) throw invalid(`"${op}" takes a list of conditions`);
      return { op, of: of.map((each) => checkCondition(each, depth + 1)) };
    case "not":
      return { op, of: checkCondition(of, depth + 1) };
    case "any":
      return { op, at: checkField(at), where: checkItemCondition(checkCondition(where, depth + 1)) };
    case "related":
      return checkRelated(given, depth);
    case "isNull":
    case "isNotNull":
      return { op, at: checkPlace(at) };
    case "eq":
    case "ne":
      return { op, at: checkPlace(at), value: checkScalar(value, op) };
    case "in":
    case "notIn":
      if (!Array.isArray(value)) throw invalid(`"${op}" takes a list: ${op}([1, 2])`);
      refuseMany(value.length, `"${op}"`);
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
      throw invalid(`${quote(op)} is not known to conditions: ${ops}`);
  }
}

/** The conditions of one question with this one more. They are bounded, because they become one statement. */
export function addParts(before: number, condition: Condition): number {
  const parts = before + countParts(condition);
  if (parts <= limits.conditionsMax) return parts;
  throw invalid(`more than ${limits.conditionsMax} conditions in one question: a list of values is one, with "in"`);
}

/** Checked once, when the question is asked, because its conditions come one by one. */
export function checkValues(conditions: unknown): void {
  refuseMany(countValues(conditions), "one question");
  const bytes = Buffer.byteLength(JSON.stringify(conditions));
  if (bytes <= limits.questionBytesMax) return;
  throw invalid(
    `the conditions of one question take ${bytes} bytes, and ${limits.questionBytesMax} at most: ask in parts, with fewer values each`,
  );
}

function refuseMany(count: number, where: string): void {
  if (count <= limits.questionValuesMax) return;
  throw invalid(
    `${count} values in the lists of ${where}, and ${limits.questionValuesMax} at most: ask in parts, or keep the values as records and relate them`,
  );
}

/** How many values the lists of all these conditions have. */
function countValues(given: unknown): number {
  if (typeof given !== "object" || given === null) return 0;
  let count = 0;
  for (const [name, each] of Object.entries(given)) {
    count += name === "value" && Array.isArray(each) ? each.length : countValues(each);
  }
  return count;
}

export type Leaf = Exclude<Condition, { of: unknown }>;

/** The conditions on single places that a condition is made of; those inside `any` belong to its items, and those inside `related`
 *  to its relations. */
export function leavesOf(condition: Condition): readonly Leaf[] {
  if (condition.op === "and" || condition.op === "or") return condition.of.flatMap(leavesOf);
  return condition.op === "not" ? leavesOf(condition.of) : [condition];
}

/** The end of a relation that a condition is about, if it is about nothing else. */
export function endOf(condition: Condition): End | undefined {
  const leaves = leavesOf(condition);
  const [first] = leaves;
  const side = first?.at.side;
  if (side !== "from" && side !== "to") return undefined;
  return leaves.every(({ at, op }) => at.side === side && op !== "related") ? side : undefined;
}

/** A condition about an end of a relation, as one about the entity there. */
export function asOwn(condition: Condition): Condition {
  if (condition.op === "and" || condition.op === "or") return { op: condition.op, of: condition.of.map(asOwn) };
  if (condition.op === "not") return { op: "not", of: asOwn(condition.of) };
  return { ...condition, at: { side: "value", path: condition.at.path } };
}

function countParts(condition: Condition): number {
  const counts = leavesOf(condition).map((leaf) => ("where" in leaf ? 1 + countParts(leaf.where) : 1));
  return counts.reduce((sum, count) => sum + count, 0);
}

function checkPlace(given: unknown): Place {
  const { side = "value", path = [] }: Record<string, unknown> = isObject(given) ? given : {};
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

function checkItemCondition(condition: Condition): Condition {
  if (leavesOf(condition).every(({ at, op }) => at.side === "value" && op !== "related")) return condition;
  throw invalid(`inside "any" only the item itself can be asked about`);
}

const counts: readonly Counted[] = ["eq", "ne", "lt", "lte", "gt", "gte"];

function checkRelated(given: Record<string, unknown>, depth: number): RelatedCondition {
  const { at, relation, way, where, is, count } = given;
  const place = checkPlace(at);
  if (place.path.length > 0 || !["value", "from", "to"].includes(place.side)) {
    throw invalid("only an entity is related to others, not a field of it");
  }
  if (typeof relation !== "string") throw invalid(`"related" names a relation, not ${quote(relation)}`);
  if (way !== "out" && way !== "in") throw invalid(`the way of "related" is "out" or "in", not ${quote(way)}`);
  const known = counts.find((each) => each === is);
  if (known === undefined) throw invalid(`a count is compared by ${counts.join(", ")}, not by ${quote(is)}`);
  const checked = checkCount(count as number, "a count of what is related", 0, Number.MAX_SAFE_INTEGER);
  return {
    op: "related",
    at: place,
    relation,
    way,
    where: checkCondition(where, depth + 1),
    is: known,
    count: checked,
  };
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

/** Finds the value at a place; undefined when there is none. */
type LookUp = (place: Place) => unknown;

/** A condition without a database: for live queries, which look at one changed document, and for grouped results. It means the
 *  same as the SQL; a test compares the two. */
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

function evaluateLeaf(condition: Leaf, found: unknown): boolean {
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
    case "related":
      throw invalid("a condition about what is related is looked up in the book: ask a query");
    case "any":
      return Array.isArray(found) && found.some((item) => evaluate(condition.where, ({ path }) => follow(item, path)));
    case "startsWith":
      return typeof found === "string" && found.startsWith(condition.value);
    case "endsWith":
      return typeof found === "string" && found.endsWith(condition.value);
    case "contains":
      return typeof found === "string" && found.includes(condition.value);
    default:
      return (
        typeof found === typeof condition.value && isOrdered(condition.op, compare(found as string, condition.value))
      );
  }
}

function isOrdered(op: Ordered, difference: number): boolean {
  if (difference === 0) return op === "lte" || op === "gte";
  return difference < 0 === (op === "lt" || op === "lte");
}

/** Numbers by size, texts by code point, as the databases do. */
export function compare(one: string | number, other: string | number): number {
  if (typeof one === "number" || typeof other === "number") return Number(one) - Number(other);
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
