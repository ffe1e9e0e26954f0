// What is related to an entity: a condition on the entity, or documents to read with it. The other end of a relation comes first, the
// relation itself second: customer.related(Placed).some((order, placed) => and(order("total").gt(50), placed("at").gt(day)))
import { checkCount } from "../../core/count.ts";
import { invalid } from "../../core/error.ts";
import { isObject } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { checkWord } from "../../core/suggest.ts";
import { checkDefinition } from "../define/definition.ts";
import type { AnyEntity, AnyRecordType, AnyRelation, Relation } from "../define/definition.ts";
import type { Entry, EntryOf } from "../entry.ts";
import { and, checkCondition, not } from "./condition.ts";
import type { Condition, Counted, Place, Side, Way } from "./condition.ts";
import { fieldAt, fieldsOf } from "./field.ts";
import type { AnyField, EndFields, EntityFields, FieldsOf, RelationFields } from "./field.ts";
import type { Order } from "./order.ts";

type Same<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
type FromOf<R> = R extends Relation<infer From> ? From : unknown;
type ToOf<R> = R extends Relation<unknown, infer To> ? To : unknown;

/** Refuses a relation that does not connect these entities. */
export type Connects<R, Value> =
  Same<FromOf<R>, Value> extends true
    ? unknown
    : Same<ToOf<R>, Value> extends true
      ? unknown
      : { readonly "this relation connects other entities": never };
export type OtherEnd<R, Value> = Same<FromOf<R>, Value> extends true ? ToOf<R> : FromOf<R>;
/** Only a relation between entities of one type must be told its way. */
export type WayGiven<R> =
  unknown extends FromOf<R> ? [way?: Way] : Same<FromOf<R>, ToOf<R>> extends true ? [way: Way] : [way?: Way];

/** What is asked of the other end, and of the relation that leads to it. */
type Asked<Other, R> = (other: EndFields<Other>, relation: FieldsOf<R>) => Condition;

/** How many there are, to compare. */
export type RelatedCount = {
  eq(count: number): Condition;
  ne(count: number): Condition;
  lt(count: number): Condition;
  lte(count: number): Condition;
  gt(count: number): Condition;
  gte(count: number): Condition;
};

/** One that is related, with the relation that leads to it. */
export type RelatedEntry<Other, R, More = unknown> = Entry<Other, string> & {
  readonly relation: EntryOf<R>;
} & More;

export type Related<Other, R, More = unknown> = {
  /** The question as data. */
  readonly of: RelatedDocuments;
  /** For the compiler alone. */
  readonly "~entry"?: RelatedEntry<Other, R, More>;
  /** Only those for which this holds. */
  where(condition: Asked<Other, R>): Related<Other, R, More>;
  /** There is one. */
  some(condition?: Asked<Other, R>): Condition;
  none(condition?: Asked<Other, R>): Condition;
  /** There is none for which it does not hold; so it holds where there are none at all. */
  every(condition: Asked<Other, R>): Condition;
  count(condition?: Asked<Other, R>): RelatedCount;
  /** Of documents that are read along: in which order, by key without this. */
  orderBy(
    field: (other: EndFields<Other>, relation: FieldsOf<R>) => AnyField,
    direction?: "asc" | "desc",
  ): Related<Other, R, More>;
  /** Of documents that are read along: at most so many for each entity. */
  limit(count: number): Related<Other, R, More>;
  /** Reads along what is related to them in turn. */
  with<W extends With>(choose: (other: EndFields<Other>) => W): Related<Other, R, More & WithOf<W>>;
};

/** What to read along, under names of the caller. */
export type With = { readonly [name: string]: { readonly of: RelatedDocuments } };
export type WithOf<W> = {
  readonly related: {
    readonly [Name in keyof W]: W[Name] extends Related<infer Other, infer R, infer More>
      ? readonly RelatedEntry<Other, R, More>[]
      : never;
  };
};

/** Documents to read along with an entity, as data. */
export type RelatedDocuments = {
  readonly relation: string;
  readonly way: Way;
  /** The type at the other end. */
  readonly type: string;
  readonly where: Condition;
  readonly orders: readonly Order[];
  readonly limit: number | null;
  readonly with: WithDocuments;
};
export type WithDocuments = { readonly [name: string]: RelatedDocuments };

/** The fields of a record of this type; the types say which of them there are. */
export function recordFields<Type>(type: AnyRecordType): FieldsOf<Type> {
  const counts = {
    count: () => ({ how: "count", at: null, where: null }) as const,
    countWhere: (condition: Condition) => ({ how: "count", at: null, where: checkCondition(condition) }) as const,
  };
  const made: EntityFields<unknown> | RelationFields<unknown, unknown, unknown> =
    type.kind === "entity"
      ? Object.assign(endFields("value", "key", type), counts)
      : Object.assign(fieldsOf("value"), counts, {
          fromKey: keyField("fromKey"),
          toKey: keyField("toKey"),
          instanceKey: keyField("instanceKey"),
          from: endFields("from", "fromKey", type.from),
          to: endFields("to", "toKey", type.to),
        });
  return made as FieldsOf<Type>;
}

function keyField(side: Side): ReturnType<typeof fieldAt<string>> {
  return fieldAt({ side, path: [] });
}

function endFields(side: Side, key: Side, entity: AnyEntity): EndFields<unknown> {
  const fields = {
    key: keyField(key),
    related: (relation: AnyRelation, way?: Way) => {
      const { name, from, to } = checkRelation(relation);
      const taken = wayOf(entity, relation, way);
      const type = (taken === "out" ? to : from).name;
      const of = { relation: name, way: taken, type, where: and(), orders: [], limit: null, with: {} };
      return related({ side, path: [] }, relation, of);
    },
  };
  return Object.assign(fieldsOf(side), fields as unknown as Omit<EndFields<unknown>, never>);
}

function checkRelation(given: AnyRelation): AnyRelation {
  if (checkDefinition(given, "related").kind === "relation") return given;
  throw invalid(`related takes a relation, and "${given.name}" is an entity: name what connects the two`);
}

function wayOf(entity: AnyEntity, { name, from, to }: AnyRelation, given: Way | undefined): Way {
  const ways = (["out", "in"] as const).filter((way) => (way === "out" ? from : to).name === entity.name);
  const [only] = ways;
  if (only === undefined) {
    throw invalid(`"${name}" does not connect "${entity.name}": it goes from "${from.name}" to "${to.name}"`);
  }
  if (given === undefined && ways.length === 1) return only;
  if (given === undefined) {
    throw invalid(`both ends of "${name}" are "${entity.name}": say which way, related(${name}, "out") or "in"`);
  }
  checkWord(given, ["out", "in"], "the way");
  if (ways.includes(given)) return given;
  throw invalid(`"${name}" goes from "${from.name}" to "${to.name}", so from "${entity.name}" its way is "${only}"`);
}

const counted: readonly Counted[] = ["eq", "ne", "lt", "lte", "gt", "gte"];

type AnyAsked = Asked<unknown, AnyRelation>;

function related(at: Place, relation: AnyRelation, of: RelatedDocuments): Related<unknown, AnyRelation> {
  const fields = recordFields<Relation>(relation);
  const other = of.way === "out" ? fields.to : fields.from;
  const asked = (condition?: AnyAsked): Condition =>
    condition === undefined ? of.where : and(of.where, condition(other, fields));
  const holds = (is: Counted, count: number, where: Condition): Condition => {
    if (of.orders.length > 0 || of.limit !== null || Object.keys(of.with).length > 0) {
      throw invalid(
        "some, none, every and count ask about all that is related: leave out orderBy, limit and with, which are for what is read along",
      );
    }
    return checkCondition({ op: "related", at, relation: of.relation, way: of.way, where, is, count });
  };
  const next = (more: Partial<RelatedDocuments>) => related(at, relation, { ...of, ...more });
  return {
    of,
    where: (condition) => next({ where: asked(condition) }),
    some: (condition) => holds("gte", 1, asked(condition)),
    none: (condition) => holds("eq", 0, asked(condition)),
    every: (condition) => holds("eq", 0, and(of.where, not(condition(other, fields)))),
    count: (condition) => {
      const entries = counted.map((is) => [is, (count: number) => holds(is, count, asked(condition))]);
      return Object.fromEntries(entries) as RelatedCount;
    },
    orderBy: (field, direction = "asc") => next({ orders: [...of.orders, orderOf(field, [other, fields], direction)] }),
    limit: (count) => next({ limit: checkCount(count, "limit", 1, limits.pageMax) }),
    with: (choose) => next({ with: documentsOf(choose, other, of.with) }) as never,
  };
}

/** The order that a caller chose, checked. */
export function orderOf<F extends unknown[]>(choose: (...fields: F) => AnyField, fields: F, direction: unknown): Order {
  if (direction !== "asc" && direction !== "desc") throw invalid(`direction ${String(direction)}: "asc" or "desc"`);
  const field = typeof choose === "function" ? choose(...fields) : undefined;
  if (typeof field?.at === "object") return { at: field.at, direction };
  throw invalid('orderBy takes a function that names a field: orderBy((order) => order("total"))');
}

/** What a query reads along, as data, with what it already does. */
export function documentsOf<F>(choose: (fields: F) => With, fields: F, already: WithDocuments = {}): WithDocuments {
  const chosen: unknown = typeof choose === "function" ? choose(fields) : undefined;
  const entries = Object.entries(isObject(chosen) ? (chosen as With) : {});
  if (entries.length === 0 || entries.length + Object.keys(already).length > limits.ordersMax) {
    throw invalid(
      `with takes a function that names from 1 to ${limits.ordersMax} things: with((customer) => ({ orders: customer.related(Placed) }))`,
    );
  }
  const added = entries.map(([name, each]): [string, RelatedDocuments] => {
    if (Object.hasOwn(already, name)) throw invalid(`with names "${name}" twice: give each its own name`);
    if (typeof each?.of === "object") return [name, each.of];
    throw invalid(`"${name}" of with is not what is related: customer.related(Placed) is`);
  });
  return Object.fromEntries([...Object.entries(already), ...added]);
}
