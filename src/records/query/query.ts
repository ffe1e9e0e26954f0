// A question about the records of one type. It is a value: every step returns a new one, and nothing is read before the last. Its
// conditions are written with the fields of the document: (order) => order("address", "city").eq("Oslo")
import { checkCount } from "../../core/count.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { rememberFor } from "../../core/remember.ts";
import type { AnyRecordType } from "../define/definition.ts";
import type { EntryOf } from "../entry.ts";
import { checkWords } from "../indexes/declared-index.ts";
import type { AsOf } from "../commit.ts";
import type { RecordReader } from "../record-reader.ts";
import { readAggregates, type Aggregate, type GroupOptions } from "./aggregate.ts";
import { addParts, checkCondition, type Condition, type Place } from "./condition.ts";
import type { AnyField, Field, FieldsOf } from "./field.ts";
import { readPage, type Question } from "./read-query.ts";
import { documentsOf, orderOf, recordFields, type With, type WithOf } from "./related.ts";

/** `next` is null on the last page. A page of large documents ends early. */
export type RecordPage<Item> = { readonly items: readonly Item[]; readonly next: string | null };
type Aggregates = Readonly<Record<string, Aggregate<unknown>>>;
type ResultOf<F extends Aggregates> = {
  readonly [Name in keyof F]: F[Name] extends Aggregate<infer Result> ? Result : never;
};
type Groups = Readonly<Record<string, AnyField>>;
type GroupOf<G> = {
  readonly [Name in keyof G]: G[Name] extends Field<infer Value> ? Exclude<Value, undefined> | null : never;
};

/** `Along` is what is read along with each record. */
export type Query<Type extends AnyRecordType, Along = unknown> = AsyncIterable<EntryOf<Type> & Along> & {
  /** The question as data. */
  readonly question: Question;
  /** Adds a condition; all of them must hold. */
  where(condition: Condition | ((record: FieldsOf<Type>) => Condition)): Query<Type, Along>;
  /** Missing first, then numbers, then texts by code point; ties by key. */
  orderBy(field: (record: FieldsOf<Type>) => AnyField, direction?: "asc" | "desc"): Query<Type, Along>;
  limit(count: number): Query<Type, Along>;
  offset(count: number): Query<Type, Along>;
  /** Continues after a page: its `next`. */
  after(cursor: string): Query<Type, Along>;
  /** As it was known then. */
  asOf(moment: AsOf): Query<Type, Along>;
  /** Has all these words, whole and in any case, in the fields that its definition declares (`search`). */
  search(words: string): Query<Type, Along>;
  /** Reads along what is related to each entity, under names of your own; a second one adds to the first.
   *
   *  ```ts
   *  const Author = entity("author", { schema: z.object({ id: z.string() }), key: "id" });
   *  const Book = entity("book", { schema: z.object({ id: z.string(), pages: z.number() }), key: "id" });
   *  const Wrote = relation("wrote", { from: Author, to: Book });
   *  const authors = book.records
   *    .query(Author)
   *    .where((author) => author.related(Wrote).some((each) => each("pages").gt(500)))
   *    .with((author) => ({ books: author.related(Wrote) }));
   *  for await (const { key, related } of authors) console.log(key, related.books.map(({ value }) => value.pages));
   *  ``` */
  with<W extends With>(choose: (record: FieldsOf<Type>) => W): Query<Type, Along & WithOf<W>>;
  list(): Promise<RecordPage<EntryOf<Type> & Along>>;
  first(): Promise<(EntryOf<Type> & Along) | undefined>;
  count(): Promise<number>;
  aggregate<F extends Aggregates>(aggregates: (record: FieldsOf<Type>) => F): Promise<ResultOf<F>>;
  groupBy<G extends Groups>(groups: (record: FieldsOf<Type>) => G): GroupedQuery<Type, G>;
};

export type GroupedQuery<Type, G> = {
  /** One row for each group, in the order of the groups' values unless `orderBy` says otherwise. */
  aggregate<F extends Aggregates>(
    aggregates: (record: FieldsOf<Type>) => F,
    options?: GroupOptions<GroupOf<G> & ResultOf<F>>,
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
export function createQuery<Type extends AnyRecordType, Along = unknown>(
  asking: Asking,
  type: Type,
  question: Question = { name: type.name, type, where: [], orders: [] },
  parts = 0,
): Query<Type, Along> {
  type Item = EntryOf<Type> & Along;
  const { reader, run } = asking;
  const fields = fieldsOfType(type) as FieldsOf<Type>;
  const next = (more: Partial<Question>, partsNow = parts): Query<Type, Along> =>
    createQuery(asking, type, { ...question, ...more }, partsNow);
  const read = (asked: Question): Promise<RecordPage<Item>> =>
    readPage<Type>(reader, asked) as Promise<RecordPage<Item>>;
  const list = (asked: Question): Promise<RecordPage<Item>> => run("list", () => read(asked));
  return {
    question,
    where(condition) {
      const given = checkCondition(typeof condition === "function" ? condition(fields) : condition);
      return next({ where: [...question.where, given] }, addParts(parts, given));
    },
    orderBy(field, direction = "asc") {
      if (question.orders.length >= limits.ordersMax)
        throw invalid(`a list is ordered by at most ${limits.ordersMax} fields`);
      return next({ orders: [...question.orders, orderOf(field, [fields], direction)] });
    },
    limit: (count) => next({ limit: checkCount(count, "limit", 1, limits.pageMax) }),
    offset: (count) => next({ offset: checkCount(count, "offset", 0, Number.MAX_SAFE_INTEGER) }),
    after: (cursor) => next({ after: cursor }),
    asOf: (moment) => next({ asOf: moment }),
    search: (words) => next({ search: checkWords(words) }),
    with: (choose) => next({ with: documentsOf(choose, fields, question.with) }) as never,
    list: () => list(question),
    first: () => run("first", async () => (await read({ ...question, limit: 1 })).items[0]),
    count: () =>
      run("count", async () => {
        const [row] = await readAggregates(reader, question, {}, { count: counted });
        return (row?.["count"] ?? 0) as number;
      }),
    aggregate: (aggregates) =>
      run("aggregate", async () => {
        const [row] = await readAggregates(reader, question, {}, aggregates(fields));
        return row as never;
      }),
    groupBy: (groups) => ({
      aggregate: (aggregates, options = {}) =>
        run("aggregate", async () => {
          const places = Object.fromEntries(
            Object.entries(groups(fields)).map(([name, { at }]): [string, Place] => [name, at]),
          );
          return (await readAggregates(reader, question, places, aggregates(fields), options)) as never;
        }),
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

const counted: Aggregate<number> = { how: "count", at: null, where: null };

const fieldsOfType = rememberFor((type: AnyRecordType) => recordFields(type));
