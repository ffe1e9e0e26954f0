// records count, aggregate, search, blame and watch: questions about many records, or about what became of one.
import type { Blamed, Entry, Query, RecordPage, WatchedCommit } from "../../index.ts";
import { systemClock } from "../../core/clock.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import type { Book } from "../../book/book.ts";
import type { AnyRecordType } from "../../records/define/definition.ts";
import type { Aggregate } from "../../records/query/aggregate.ts";
import { checked, flag, list, maybe, text, whole } from "../field.ts";
import { pageOf } from "../list.ts";
import { page } from "../shared-fields.ts";
import { row, table, when } from "../shown.ts";
import { read } from "../verb.ts";
import { asOf, filters, key, readCondition, readKey, readMoment, readPlace, type } from "./record-field.ts";
import { definedHere } from "./record-change.ts";
import { keyText, recordColumns } from "./record-view.ts";

type Asked = { readonly type: string; readonly filters?: readonly string[]; readonly asOf?: string };

/** The records of a type that pass the filters, at that moment. */
export async function asked(
  book: Book,
  { type: name, filters: given = [], asOf: then }: Asked,
): Promise<Query<AnyRecordType>> {
  let query = book.records.query(await book.records.type(name));
  for (const each of given) query = query.where(readCondition(each));
  return then === undefined ? query : query.asOf(readMoment(then));
}

const number = checked(text("a number to compute", "number"), readNumber);

export const ask = {
  count: read({
    words: "records count <type>",
    http: "GET /records/{type}/count",
    about: "count the records of a type",
    input: { type, filters, asOf },
    examples: [`records count order --filter 'status eq "paid"'`],
    run: async (book, input) => ({ count: await (await asked(book, input)).count() }),
    show: ({ count }) => String(count),
  }),

  aggregate: read({
    words: "records aggregate <type> <numbers...>",
    http: "GET /records/{type}/numbers",
    about: "compute numbers about the records of a type, of all or by group",
    more: `A number is count, or sum, avg, min, max or avgLength with a colon and a path: sum:total, max:to:price.
Groups are in the order of their values, nothing first, unless --order names one of the numbers.`,
    input: {
      type,
      numbers: list(number, { max: 16 }),
      by: maybe(list(text("group by this field; may be given several times", "path"), { one: "by", max: 16 })),
      filters,
      order: maybe(text("order the groups by this number or field", "number")),
      desc: maybe(flag("order downwards")),
      limit: maybe(whole("at most so many groups", 1, limits.groupsMax)),
      asOf,
    },
    examples: [
      "records aggregate order count sum:total --by status",
      "records aggregate placed sum:to:total --by from:country --order sum:to:total --desc --limit 10",
    ],
    check({ by = [], order, desc, limit, numbers }) {
      for (const each of by) readPlace(each);
      const twice = by.find((each) => numbers.includes(each));
      if (twice !== undefined) {
        throw invalid(`${quote(twice)} is a number and a field to group by, and a column has one name: leave one out`);
      }
      if (by.length === 0 && [order, desc, limit].some((given) => given !== undefined)) {
        throw invalid("order, desc and limit are for groups: say by what to group with by");
      }
      if (order !== undefined && ![...by, ...numbers].includes(order)) {
        throw invalid(`order is ${quote(order)}: give one of ${[...by, ...numbers].join(", ")}`);
      }
    },
    async run(book, { numbers, by = [], order, desc, limit, ...input }): Promise<{ items: readonly Numbers[] }> {
      const query = await asked(book, input);
      const wanted = () => Object.fromEntries(numbers.map((each) => [each, readNumber(each)]));
      if (by.length === 0) return { items: [await query.aggregate(wanted)] };
      const groups = query.groupBy(() => Object.fromEntries(by.map((each) => [each, { at: readPlace(each) }])));
      const items = await groups.aggregate(wanted, {
        direction: desc === true ? "desc" : "asc",
        ...(order === undefined ? {} : { orderBy: () => ({ at: { side: "value", path: [order] } }) }),
        ...(limit === undefined ? {} : { limit }),
      });
      return { items };
    },
    show: ({ items }, { by = [], numbers }) => {
      const columns = [...by, ...numbers].map((name) => [name, (each: Numbers) => cell(each[name])] as const);
      return table(items, Object.fromEntries(columns), { none: "There are no such records.", least: [] });
    },
  }),

  search: read({
    words: "records search <type> <words>",
    http: "GET /records/{type}/found",
    // Only a session builds the index of the words.
    needs: "session",
    definitions: "must",
    definitionKind: "record",
    definitionsOf: ({ type: name }) => [name],
    about: "list the records that have all these words in the fields that their definition searches",
    more: "The definition is needed, because it says which fields those are; their index is built if it is not there.",
    input: { type, words: text("the words, in any order and case", "words", limits.searchCharactersMax), ...page },
    examples: ["records search note 'milk bread' --from ./records.ts"],
    run: (book, input): Promise<RecordPage<Entry>> =>
      pageOf(book, "found", input, async ({ type: name, words, limit, after }) => {
        let query: Query<AnyRecordType> = book.records.query(await definedHere(book, name)).search(words);
        if (limit !== undefined) query = query.limit(limit);
        return (after === undefined ? query : query.after(after)).list();
      }),
    show: ({ items }) =>
      table(items, recordColumns, { none: "No record has all of these words.", least: ["commit", "revision"] }),
  }),

  blame: read({
    words: "records blame <type> <key...>",
    about: "show which commit last set each field of a record",
    input: { type, key },
    examples: ["records blame order o-17"],
    async run(book, { type: name, key: parts }): Promise<{ items: readonly (Blamed & { field: string })[] }> {
      const of = await book.records.type(name);
      const found = await book.records.blame(of, readKey(of, parts) as never);
      return { items: Object.entries(found).map(([field, each]) => ({ field, ...each })) };
    },
    show: ({ items }) =>
      table(
        items,
        {
          field: (each) => each.field,
          commit: (each) => each.commit,
          revision: (each) => each.revision,
          when: (each) => when(each.at),
          who: (each) => each.actor,
          why: (each) => each.reason,
        },
        { none: "It has no fields.", least: ["revision"] },
      ),
  }),

  watch: read({
    words: "records watch <type>",
    http: "GET /records/{type}/stream",
    stream: true,
    about: "follow what happens to the records of a type, commit by commit",
    more: `A record is added when it comes to pass the filters, changed while it does, and removed when it no longer does.
It ends by Ctrl-C, or after --count commits. With --json each commit is one line.`,
    input: {
      type,
      filters,
      after: maybe(whole("also what happened after this commit (default: from now on)", 0, 1_000_000_000_000)),
      count: maybe(whole("end after so many commits", 1)),
    },
    examples: [`records watch order --filter 'status eq "paid"'`],
    run: (book, { count, after, ...input }, { signal }) => watched(book, input, { count, after, signal }),
    show: ({ at, commit, changes }) =>
      changes.map((each) =>
        row(when(at), commit, each.kind, keyText(each.key), each.value === null ? null : JSON.stringify(each.value)),
      ),
  }),
};

type Numbers = { readonly [name: string]: unknown };

function cell(value: unknown): string | number | null {
  return value === null || typeof value === "number" || typeof value === "string" ? value : JSON.stringify(value);
}

const hows = ["count", "sum", "avg", "min", "max", "avgLength"] as const;

/** `count`, `sum:total`, `avg:to:price`. */
function readNumber(given: string): Aggregate<unknown> {
  const [, name, path] = /^(\w+)(?::([^]+))?$/.exec(given) ?? [];
  const how = hows.find((each) => each === name);
  if (how === undefined || (how === "count") !== (path === undefined)) {
    throw invalid(
      `${quote(given)} is no number to compute: give count, or ${hows.slice(1).join(", ")} with a path, such as sum:total`,
    );
  }
  return { how, at: path === undefined ? null : readPlace(path), where: null };
}

type Watching = {
  readonly count: number | undefined;
  readonly after: number | undefined;
  readonly signal: AbortSignal;
};

async function* watched(
  book: Book,
  input: Asked,
  { count = Infinity, after, signal }: Watching,
): AsyncGenerator<WatchedCommit<AnyRecordType>, void, undefined> {
  const options = { signal, ...(after === undefined ? {} : { after }) };
  const over = new AbortController();
  void stay(AbortSignal.any([signal, over.signal]));
  try {
    let left = count;
    for await (const each of book.records.watch(await asked(book, input), options)) {
      yield each;
      if (--left <= 0) return;
    }
  } finally {
    over.abort();
  }
}

const dayMs = 86_400_000;

/** Keeps the process alive: a book that is only read wakes nobody who has left. */
async function stay(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await systemClock.sleep(dayMs, signal).catch(() => undefined);
}
