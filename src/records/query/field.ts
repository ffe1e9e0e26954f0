// The fields of a document as code names them: order("address", "city"). A field makes conditions and aggregates, which are data.
import type { AnyRelation, Entity, Names, Relation } from "../define/definition.ts";
import type { Aggregate } from "./aggregate.ts";
import { checkCondition } from "./condition.ts";
import type { Condition, Op, Place, Scalar, Side } from "./condition.ts";
import type { Connects, OtherEnd, Related, WayGiven } from "./related.ts";

type At<Value, Name> = Value extends readonly unknown[]
  ? never
  : Value extends object
    ? Name extends keyof Value
      ? Value[Name]
      : never
    : never;
type AtPath<Value, Path> = Path extends readonly [infer Name, ...infer Rest] ? AtPath<At<Value, Name>, Rest> : Value;
/** The same path where the document has it; where it has not, the names that there are. */
type Known<Value, Path> = Path extends readonly [infer Name, ...infer Rest]
  ? Name extends Names<Value>
    ? readonly [Name, ...Known<At<Value, Name>, Rest>]
    : readonly [Names<Value>, ...string[]]
  : readonly [];
type ItemOf<Value> = Value extends readonly (infer Item)[] ? Item : never;
/** What a value of this type may be compared with; anything where the type is not known. */
type ScalarOf<Value> = unknown extends Value ? Scalar : Extract<Value, Scalar>;
type TextOf<Value> = unknown extends Value ? string : Extract<Value, string> extends never ? never : string;
type NumberOf<Value> = unknown extends Value ? number : Extract<Value, number> extends never ? never : number;

/** A field of any type. */
export type AnyField = { readonly at: Place };

export type Field<Value> = AnyField & {
  eq(value: ScalarOf<Value>): Condition;
  /** Not equal; a record without such a field matches too. */
  ne(value: ScalarOf<Value>): Condition;
  lt(value: TextOf<Value> | NumberOf<Value>): Condition;
  lte(value: TextOf<Value> | NumberOf<Value>): Condition;
  gt(value: TextOf<Value> | NumberOf<Value>): Condition;
  gte(value: TextOf<Value> | NumberOf<Value>): Condition;
  in(values: readonly ScalarOf<Value>[]): Condition;
  notIn(values: readonly ScalarOf<Value>[]): Condition;
  startsWith(text: TextOf<Value>): Condition;
  endsWith(text: TextOf<Value>): Condition;
  contains(text: TextOf<Value>): Condition;
  /** Null, or not there at all. */
  isNull(): Condition;
  isNotNull(): Condition;
  /** One item of an array fits: `tags.any((tag) => tag().eq("new"))`. */
  any(where: (item: Fields<ItemOf<Value>>) => Condition): Condition;
  sum(): Aggregate<number | null>;
  avg(): Aggregate<number | null>;
  min(): Aggregate<Extract<Value, string | number> | null>;
  max(): Aggregate<Extract<Value, string | number> | null>;
  /** The average number of items of an array. */
  avgLength(): Aggregate<number | null>;
};

/** The field at a path, as deep as the document goes. An editor completes the first three names. */
export type Fields<Value> = {
  (): Field<Value>;
  <A extends Names<Value>>(a: A): Field<At<Value, A>>;
  <A extends Names<Value>, B extends Names<At<Value, A>>>(a: A, b: B): Field<At<At<Value, A>, B>>;
  <A extends Names<Value>, B extends Names<At<Value, A>>, C extends Names<At<At<Value, A>, B>>>(
    ...path: [A, B, C]
  ): Field<At<At<At<Value, A>, B>, C>>;
  <
    A extends Names<Value>,
    B extends Names<At<Value, A>>,
    C extends Names<At<At<Value, A>, B>>,
    const Rest extends readonly string[],
  >(
    a: A,
    b: B,
    c: C,
    ...rest: Rest & Known<At<At<At<Value, A>, B>, C>, Rest>
  ): Field<AtPath<At<At<At<Value, A>, B>, C>, Rest>>;
};

/** The fields of an entity, wherever it stands: its own, its key, and what is related to it. */
export type EndFields<Value> = Fields<Value> & {
  readonly key: Field<string>;
  /** The entities that a relation connects this one with: `customer.related(Placed).some((order) => order("total").gt(50))`. A
   *  relation between entities of one type is told its way: `out`, from `from` to `to`, or `in`. */
  related<R extends AnyRelation>(relation: R & Connects<R, Value>, ...way: WayGiven<R>): Related<OtherEnd<R, Value>, R>;
};

type Counts = {
  count(): Aggregate<number>;
  countWhere(condition: Condition): Aggregate<number>;
};

export type EntityFields<Value> = EndFields<Value> & Counts;

export type RelationFields<From, To, Value> = Fields<Value> &
  Counts & {
    readonly from: EndFields<From>;
    readonly to: EndFields<To>;
    readonly fromKey: Field<string>;
    readonly toKey: Field<string>;
    readonly instanceKey: Field<string>;
  };

export type FieldsOf<Type> =
  Type extends Relation<infer From, infer To, unknown, infer Value>
    ? RelationFields<From, To, Value>
    : Type extends Entity<unknown, infer Value>
      ? EntityFields<Value>
      : never;

/** The fields of a document, of an item, or of a row of results. */
export function fieldsOf(side: Side): (...path: string[]) => Field<unknown> {
  return (...path) => fieldAt({ side, path });
}

const ordered: readonly Op[] = ["eq", "ne", "lt", "lte", "gt", "gte", "in", "notIn"];
const textual: readonly Op[] = ["startsWith", "endsWith", "contains"];
const aggregates: readonly Aggregate<unknown>["how"][] = ["sum", "avg", "min", "max", "avgLength"];

export function fieldAt<Value>(at: Place): Field<Value> {
  const compare = (op: Op) => [op, (value: unknown) => checkCondition({ op, at, value })];
  const aggregate = (how: Aggregate<unknown>["how"]) => [how, () => ({ how, at, where: null })];
  return {
    at,
    ...Object.fromEntries([...[...ordered, ...textual].map(compare), ...aggregates.map(aggregate)]),
    isNull: () => checkCondition({ op: "isNull", at }),
    isNotNull: () => checkCondition({ op: "isNotNull", at }),
    any: (where: (item: Fields<unknown>) => Condition) =>
      checkCondition({ op: "any", at, where: where(fieldsOf("value")) }),
  } as Field<Value>;
}
