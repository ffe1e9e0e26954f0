// A question about the records of one type. It is a value: every step returns a new one, and nothing is read before the last. Its
// conditions are written with the fields of the document: (order) => order("address", "city").eq("Oslo")
import { checkCount } from "../../core/count.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { AnyRecordType, Entity, Names, Relation } from "../define/definition.ts";
import type { EntryOf } from "../entry.ts";
import { checkWords } from "../indexes/declared-index.ts";
import type { AsOf } from "../commit.ts";
import type { RecordReader } from "../record-reader.ts";
import { addParts, checkCondition } from "./condition.ts";
import type { Condition, Op, Place, Scalar, Side } from "./condition.ts";
import type { Order } from "./order.ts";
import { readAggregates, readPage, type Question } from "./read-query.ts";

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

export type FieldsOf<Type> =
  Type extends Relation<infer From, infer To, unknown, infer Value>
    ? RelationFields<From, To, Value>
    : Type extends Entity<unknown, infer Value>
      ? EntityFields<Value>
      : never;

/** `next` is null on the last page. A page of large documents ends early. */
export type RecordPage<Type> = { readonly items: readonly EntryOf<Type>[]; readonly next: string | null };
type Aggregates = Readonly<Record<string, Aggregate<unknown>>>;
type ResultOf<F extends Aggregates> = {
  readonly [Name in keyof F]: F[Name] extends Aggregate<infer Result> ? Result : never;
};
type Groups = Readonly<Record<string, AnyField>>;
type GroupOf<G> = {
  readonly [Name in keyof G]: G[Name] extends Field<infer Value> ? Exclude<Value, undefined> | null : never;
};

export type Query<Type extends AnyRecordType> = AsyncIterable<EntryOf<Type>> & {
  /** The question as data. */
  readonly question: Question;
  /** Adds a condition; all of them must hold. */
  where(condition: Condition | ((record: FieldsOf<Type>) => Condition)): Query<Type>;
  /** Missing first, then numbers, then texts by code point; ties by key. */
  orderBy(field: (record: FieldsOf<Type>) => AnyField, direction?: "asc" | "desc"): Query<Type>;
  limit(count: number): Query<Type>;
  offset(count: number): Query<Type>;
  /** Continues after a page: its `next`. */
  after(cursor: string): Query<Type>;
  /** As it was known then. */
  asOf(moment: AsOf): Query<Type>;
  /** Has all these words, whole and in any case, in the fields that its definition declares (`search`). */
  search(words: string): Query<Type>;
  list(): Promise<RecordPage<Type>>;
  first(): Promise<EntryOf<Type> | undefined>;
  count(): Promise<number>;
  aggregate<F extends Aggregates>(aggregates: (record: FieldsOf<Type>) => F): Promise<ResultOf<F>>;
  groupBy<G extends Groups>(groups: (record: FieldsOf<Type>) => G): GroupedQuery<Type, G>;
};

export type GroupedQuery<Type, G> = {
  /** One row for each group, in the order of the groups' values. */
  aggregate<F extends Aggregates>(
    aggregates: (record: FieldsOf<Type>) => F,
    having?: (row: Fields<GroupOf<G> & ResultOf<F>>) => Condition,
  ): Promise<readonly (GroupOf<G> & ResultOf<F>)[]>;
};

/** How a query reaches the book; every read goes through `run`. */
export type Asking = {
  readonly reader: RecordReader;
  /** For an export, whose pages may take longer. */
  readonly exporter?: RecordReader;
  readonly run: <T>(verb: string, work: () => Promise<T>) => Promise<T>;
};

/** `parts`: of how many conditions `question.where` is made. They are counted as they come, because a question of hundreds of them
 *  that was counted anew at each step held the loop for 20 ms. */
export function createQuery<Type extends AnyRecordType>(asking: Asking, question: Question, parts = 0): Query<Type> {
  const { reader, run } = asking;
  const fields = fieldsOfAny as unknown as FieldsOf<Type>;
  const next = (more: Partial<Question>, partsNow = parts): Query<Type> =>
    createQuery(asking, { ...question, ...more }, partsNow);
  const list = (asked: Question): Promise<RecordPage<Type>> => run("list", () => readPage<Type>(reader, asked));
  return {
    question,
    where(condition) {
      const given = checkCondition(typeof condition === "function" ? condition(fields) : condition);
      return next({ where: [...question.where, given] }, addParts(parts, given));
    },
    orderBy(field, direction = "asc") {
      if (direction !== "asc" && direction !== "desc") throw invalid(`direction ${String(direction)}: "asc" or "desc"`);
      if (question.orders.length >= limits.ordersMax)
        throw invalid(`a list is ordered by at most ${limits.ordersMax} fields`);
      return next({ orders: [...question.orders, checkOrder({ at: fieldOf(field, fields).at, direction })] });
    },
    limit: (count) => next({ limit: checkCount(count, "limit", 1, limits.pageMax) }),
    offset: (count) => next({ offset: checkCount(count, "offset", 0, Number.MAX_SAFE_INTEGER) }),
    after: (cursor) => next({ after: cursor }),
    asOf: (moment) => next({ asOf: moment }),
    search: (words) => next({ search: checkWords(words) }),
    list: () => list(question),
    first: async () => (await list({ ...question, limit: 1 })).items[0],
    async count() {
      const [row] = await run("count", () => readAggregates(reader, question, {}, { count: fields.count() }));
      return (row?.["count"] ?? 0) as number;
    },
    async aggregate(aggregates) {
      const [row] = await run("aggregate", () => readAggregates(reader, question, {}, aggregates(fields)));
      return row as never;
    },
    groupBy: (groups) => ({
      async aggregate(aggregates, having) {
        const places = Object.fromEntries(Object.entries(groups(fields)).map(([name, field]) => [name, field.at]));
        const kept = having === undefined ? undefined : checkCondition(having(fieldsOf("value") as never));
        return (await run("aggregate", () =>
          readAggregates(reader, question, places, aggregates(fields), kept),
        )) as never;
      },
    }),
    async *[Symbol.asyncIterator]() {
      // With a limit, the caller wants that many in all, which is at most a page.
      let page = await list({ ...question, limit: question.limit ?? limits.pageMax });
      for (;;) {
        yield* page.items;
        if (page.next === null || question.limit !== undefined) return;
        const { offset: _offset, ...rest } = question;
        page = await list({ ...rest, limit: limits.pageMax, after: page.next });
      }
    },
  };
}

function fieldOf<F>(choose: (fields: F) => AnyField, fields: F): AnyField {
  const field = typeof choose === "function" ? choose(fields) : undefined;
  if (typeof field?.at === "object") return field;
  throw invalid('orderBy takes a function that names a field: orderBy((order) => order("total"))');
}

function checkOrder(order: Order): Order {
  if (order.at.side !== "from" && order.at.side !== "to") return order;
  throw invalid("a list of relations is ordered by their own fields and keys, not by those of their endpoints");
}

/** The fields of an item, of an endpoint, or of a row of results. */
function fieldsOf(side: Side): (...path: string[]) => Field<unknown> {
  return (...path) => fieldAt({ side, path });
}

/** The fields of a record of any kind; the types above say which of them there are. */
function recordFields(): EntityFields<unknown> & RelationFields<unknown, unknown, unknown> {
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

const ordered: readonly Op[] = ["eq", "ne", "lt", "lte", "gt", "gte", "in", "notIn"];
const textual: readonly Op[] = ["startsWith", "endsWith", "contains"];
const aggregates: readonly Aggregate<unknown>["how"][] = ["sum", "avg", "min", "max", "avgLength"];

function fieldAt(at: Place): Field<unknown> {
  const compare = (op: Op) => [op, (value: unknown) => checkCondition({ op, at, value })];
  const aggregate = (how: Aggregate<unknown>["how"]) => [how, () => ({ how, at, where: null })];
  return {
    at,
    ...Object.fromEntries([...[...ordered, ...textual].map(compare), ...aggregates.map(aggregate)]),
    isNull: () => checkCondition({ op: "isNull", at }),
    isNotNull: () => checkCondition({ op: "isNotNull", at }),
    any: (where: (item: Fields<unknown>) => Condition) =>
      checkCondition({ op: "any", at, where: where(fieldsOf("value")) }),
  } as Field<unknown>;
}

// Made last, because the lists that it is made from stand above.
const fieldsOfAny = recordFields();
