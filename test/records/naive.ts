// What conditions mean, written once more and as plainly as possible: nothing here is shared with the product.
import type { Condition, Place } from "../../src/records/query/condition.ts";

export function fits(condition: Condition, value: unknown): boolean {
  if (condition.op === "and") return condition.of.every((each) => fits(each, value));
  if (condition.op === "or") return condition.of.some((each) => fits(each, value));
  if (condition.op === "not") return !fits(condition.of, value);
  if (condition.op === "related") throw new Error("what is related is not in the document");
  const found = lookUp(value, condition.at);
  if (condition.op === "any") return Array.isArray(found) && found.some((item) => fits(condition.where, item));
  if (condition.op === "isNull") return found == null;
  if (condition.op === "isNotNull") return found != null;
  if (condition.op === "eq") return found === condition.value;
  if (condition.op === "ne") return found !== condition.value;
  if (condition.op === "in") return (condition.value as unknown[]).some((each) => each === found);
  if (condition.op === "notIn") return !(condition.value as unknown[]).some((each) => each === found);
  if (typeof found !== typeof (condition as { value: unknown }).value) return false;
  const [one, other] = [found as string, (condition as { value: string }).value];
  if (condition.op === "startsWith") return one.startsWith(other);
  if (condition.op === "endsWith") return one.endsWith(other);
  if (condition.op === "contains") return one.includes(other);
  const order = compare(one, other);
  return { lt: order < 0, lte: order <= 0, gt: order > 0, gte: order >= 0 }[condition.op];
}

function lookUp(value: unknown, { path }: Place): unknown {
  let found = value;
  for (const name of path) {
    if (found === null || typeof found !== "object" || Array.isArray(found)) return undefined;
    found = Object.entries(found).find(([key]) => key === name)?.[1];
  }
  return found;
}

function compare(one: string | number, other: string | number): number {
  if (typeof one === "number") return one - Number(other);
  const [a, b] = [Array.from(one), Array.from(String(other))].map((letters) =>
    letters.map((each) => each.codePointAt(0) ?? 0),
  ) as [number[], number[]];
  for (let at = 0; at < Math.min(a.length, b.length); at++) if (a[at] !== b[at]) return (a[at] ?? 0) - (b[at] ?? 0);
  return a.length - b.length;
}

/** Missing (or an object, or an array), then numbers and booleans, then texts. */
export function compareOrder(one: unknown, other: unknown): number {
  const rank = (value: unknown): number =>
    typeof value === "string" ? 2 : typeof value === "number" || typeof value === "boolean" ? 1 : 0;
  if (rank(one) !== rank(other)) return rank(one) - rank(other);
  if (rank(one) === 0) return 0;
  return rank(one) === 2 ? compare(one as string, other as string) : Number(one) - Number(other);
}

export function at(value: unknown, path: readonly string[]): unknown {
  return lookUp(value, { side: "value", path });
}
