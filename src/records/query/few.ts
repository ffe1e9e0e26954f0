// Where a search begins. SQLite has no idea how many records fit a condition on a document, so those on indexed places are counted first,
// up to a few: with few, the search goes from them to what they are related to, otherwise the other way.
import { samePath } from "../define/definition.ts";
import type { Sort } from "./arms.ts";
import { asOwn, leavesOf, type Condition, type Leaf, type RelatedCondition } from "./condition.ts";
import type { Ground } from "./source.ts";

/** A condition on a place of a type, or of the entities that it connects, that an index answers. */
export type Beginning = { readonly sort: Sort; readonly leaf: Leaf };

/** Those on endpoints and on related records; a search always can begin with the records themselves. */
export function beginningsOf(relations: Ground["relations"], sort: Sort, where: Condition, own = false): Beginning[] {
  return leavesOf(where).flatMap((leaf) => {
    if (leaf.op === "related") {
      const relation = relations.get(leaf.relation);
      return relation === undefined ? [] : beginningsOf(relations, relation, leaf.where, true);
    }
    const found = placed(sort, leaf);
    return (own || found.sort !== sort) && isIndexed(found) ? [found] : [];
  });
}

const indexedOps: readonly Condition["op"][] = ["eq", "in", "lt", "lte", "gt", "gte", "startsWith"];

function isIndexed({ sort, leaf }: Beginning): boolean {
  const { op, at } = leaf;
  if (at.side === "fromKey" || at.side === "toKey" || at.side === "key") return op === "eq" || op === "in";
  if (at.side !== "value") return false;
  if (op === "any") return sort.indexes.some((index) => index.each && samePath(index.path, at.path));
  return indexedOps.includes(op) && sort.indexes.some((index) => !index.each && samePath(index.path, at.path));
}

/** A condition on an endpoint is one on the entity there. */
function placed(sort: Sort, leaf: Leaf): Beginning {
  const { side } = leaf.at;
  if ((side !== "from" && side !== "to") || sort.ends === null) return { sort, leaf };
  return { sort: sort.ends[side], leaf: asOwn(leaf) as Leaf };
}

export function markOf({ sort, leaf }: Beginning): string {
  return `${sort.seq} ${JSON.stringify(leaf)}`;
}

/** Whether a search among all records of the type best begins with those that fit. */
export function begins(ground: Ground, sort: Sort, where: Condition): boolean {
  switch (where.op) {
    case "and":
      return where.of.some((each) => begins(ground, sort, each));
    case "or":
      return where.of.length > 0 && where.of.every((each) => begins(ground, sort, each));
    case "not":
      return false;
    case "related": {
      const relation = ground.relations.get(where.relation);
      return relation !== undefined && holdsForSome(where) && begins(ground, relation, where.where);
    }
    default:
      return ground.few.has(markOf(placed(sort, where)));
  }
}

/** Whether the condition says that there is one at least, however it says so. */
export function holdsForSome(condition: RelatedCondition): boolean {
  return !isCount(0, condition) && isCount(1, condition) && isCount(2, condition);
}

/** Whether it says that there is none. */
export function holdsForNone(condition: RelatedCondition): boolean {
  return isCount(0, condition) && !isCount(1, condition) && !isCount(2, condition);
}

/** Whether the condition holds when so many were found. */
export function isCount(found: number, { is, count }: Pick<RelatedCondition, "is" | "count">): boolean {
  const [less, same] = [found < count, found === count];
  return { eq: same, ne: !same, lt: less, lte: less || same, gt: !less && !same, gte: !less }[is];
}
