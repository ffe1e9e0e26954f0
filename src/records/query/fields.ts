// The fields of a document with their types, for writing conditions: (order) => order("address", "city").eq("Oslo")
import { checkCondition, type Condition, type Op, type Place, type Scalar, type Side } from "./condition.ts";

type Names<Value> = Value extends readonly unknown[] ? never : Value extends object ? keyof Value & string : never;
type At<Value, Name> = Value extends readonly unknown[]
  ? never
  : Value extends object
    ? Name extends keyof Value
      ? Value[Name]
      : never
    : never;
type ItemOf<Value> = Value extends readonly (infer Item)[] ? Item : never;
/** What a value of this type may be compared with; anything where the type is not known. */
type ScalarOf<Value> = unknown extends Value ? Scalar : Extract<Value, Scalar>;
type TextOf<Value> = unknown extends Value ? string : Extract<Value, string> extends never ? never : string;
type NumberOf<Value> = unknown extends Value ? number : Extract<Value, number> extends never ? never : number;

/** One value that is computed from many documents. */
export type Aggregate<Result> = {
  readonly how: "count" | "sum" | "avg" | "min" | "max" | "avgLength";
  readonly at: Place | null;
  readonly where: Condition | null;
  /** For the compiler alone. */
  readonly "~result"?: Result;
};

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

export type Fields<Value> = {
  (): Field<Value>;
  <A extends Names<Value>>(a: A): Field<At<Value, A>>;
  <A extends Names<Value>, B extends Names<At<Value, A>>>(a: A, b: B): Field<At<At<Value, A>, B>>;
  <A extends Names<Value>, B extends Names<At<Value, A>>, C extends Names<At<At<Value, A>, B>>>(
    ...path: [A, B, C]
  ): Field<At<At<At<Value, A>, B>, C>>;
};

export type RecordFields<Value> = Fields<Value> & {
  count(): Aggregate<number>;
  countWhere(condition: Condition): Aggregate<number>;
};

export type EntityFields<Value> = RecordFields<Value> & { readonly key: Field<string> };

export type RelationFields<From, To, Value> = RecordFields<Value> & {
  readonly from: Fields<From>;
  readonly to: Fields<To>;
  readonly fromKey: Field<string>;
  readonly toKey: Field<string>;
  readonly instanceKey: Field<string>;
};

/** The fields of an item, of an endpoint, or of a row of results. */
export function fieldsOf(side: Side): (...path: string[]) => Field<unknown> {
  return (...path) => fieldAt({ side, path });
}

/** The fields of a record of any kind; the types above say which of them there are. */
export function recordFields(): EntityFields<unknown> & RelationFields<unknown, unknown, unknown> {
  const key = (side: Side): Field<string> => fieldAt({ side, path: [] });
  return Object.assign(fieldsOf("value"), {
    key: key("key"),
    fromKey: key("fromKey"),
    toKey: key("toKey"),
    instanceKey: key("instanceKey"),
    from: fieldsOf("from"),
    to: fieldsOf("to"),
    count: () => ({ how: "count", at: null, where: null }) as const,
    countWhere: (condition: Condition) => ({ how: "count", at: null, where: checkCondition(condition) }) as const,
  });
}

function fieldAt(at: Place): Field<unknown> {
  const compare = (op: Op) => (value: unknown) => checkCondition({ op, at, value });
  const aggregate =
    <Result>(how: Aggregate<Result>["how"]) =>
    (): Aggregate<Result> => ({ how, at, where: null });
  return {
    at,
    eq: compare("eq"),
    ne: compare("ne"),
    lt: compare("lt"),
    lte: compare("lte"),
    gt: compare("gt"),
    gte: compare("gte"),
    in: compare("in"),
    notIn: compare("notIn"),
    startsWith: compare("startsWith"),
    endsWith: compare("endsWith"),
    contains: compare("contains"),
    isNull: () => checkCondition({ op: "isNull", at }),
    isNotNull: () => checkCondition({ op: "isNotNull", at }),
    any: (where) => checkCondition({ op: "any", at, where: where(fieldsOf("value")) }),
    sum: aggregate("sum"),
    avg: aggregate("avg"),
    min: aggregate("min"),
    max: aggregate("max"),
    avgLength: aggregate("avgLength"),
  };
}
