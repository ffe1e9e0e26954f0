// records: what is known, now or then, and how it came to be.
import type { Entry, Reached } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { AnyRelation } from "../../records/define/definition.ts";
import { listed, paged, pageOf } from "../list.ts";
import { flag, list, maybe, text, whole, word } from "../field.ts";
import { page } from "../shared-fields.ts";
import { asJson, table, when } from "../shown.ts";
import { read } from "../verb.ts";
import { ask, asked } from "./record-ask.ts";
import { change } from "./record-change.ts";
import { write } from "./record-write.ts";
import { asOf, filters, key, moment, readKey, readMoment, readPlace, type } from "./record-field.ts";
import { changeTable, recordColumns } from "./record-view.ts";

export const records = {
  types: listed({
    words: "records types",
    http: "GET /record-types",
    about: "list the types of which something was ever written",
    find: (book) => book.records.types(),
    columns: {
      type: (each) => each.name,
      kind: (each) => each.kind,
      from: (each) => each.from,
      to: (each) => each.to,
      schema: (each) => each.schemaVersion,
      records: (each) => each.records,
    },
    none: "No record was ever written.",
    least: ["schema"],
  }),

  list: paged({
    words: "records list <type>",
    about: "list the records of a type",
    more: `A filter is a path, a word and a value in JSON. A path is names with dots between them (address.city),
a JSON list of names where one has a dot itself, from:… and to:… for the endpoints of a relation, or
@key, @from, @to, @instance. Words: eq ne lt lte gt gte in notIn startsWith endsWith contains, and
isNull and isNotNull, which take no value. Several filters must all hold.`,
    input: {
      type,
      filters,
      order: maybe(text("order by this field, then by key (default: by key)", "path")),
      desc: maybe(flag("order downwards")),
      asOf,
    },
    examples: [
      `records list order --filter 'status eq "paid"' --filter 'total gte 40'`,
      `records list placed --filter 'from:country eq "NO"'`,
      "records list order --as-of 2026-11-01T00:00:00Z",
    ],
    check({ order, desc }) {
      if (order === undefined && desc !== undefined) throw invalid("desc is for order: give both");
      if (order !== undefined) readPlace(order);
    },
    async find(book, { order, desc, limit, after, ...input }) {
      let query = await asked(book, input);
      if (order !== undefined) {
        query = query.orderBy(() => ({ at: readPlace(order) }), desc === true ? "desc" : "asc");
      }
      if (limit !== undefined) query = query.limit(limit);
      if (after !== undefined) query = query.after(after);
      return query.list();
    },
    columns: recordColumns,
    none: "There are no such records.",
    least: ["commit", "revision"],
  }),

  show: read({
    words: "records show <type> <key...>",
    http: "GET /records/{type}/record",
    about: "show one record: its document, its revision and its commit",
    input: { type, key, asOf },
    examples: ["records show order o-17", "records show placed ada o-17 --as-of 4"],
    async run(book, { type: name, key: words, asOf: then }): Promise<Entry> {
      const of = await book.records.type(name);
      const at = readKey(of, words) as never;
      const options = then === undefined ? {} : { asOf: readMoment(then) };
      const entry = await book.records.entry(of, at, options);
      // The library says that there is none.
      if (entry === undefined) await book.records.get(of, at, options);
      return entry as Entry;
    },
    show: (entry) => asJson(entry),
  }),

  traverse: read({
    words: "records traverse <type> <key>",
    http: "GET /records/{type}/connected",
    about: "list the records that one is connected with, each by a shortest path",
    input: {
      type: text("the name of the entity to begin at", "name"),
      key: text("its key", "key"),
      via: list(text("a relation to follow; may be given several times", "relation")),
      direction: maybe(word("out (from from to to, the default), in, or both", ["out", "in", "both"])),
      hops: maybe(whole("how far to go (default: 1)", 1, limits.traversalHopsMax)),
      asOf,
    },
    examples: ["records traverse customer ada --via placed", "records traverse order o-17 --via placed --direction in"],
    async run(book, { type: name, key: from, via, asOf: then, ...rest }): Promise<{ items: readonly Reached[] }> {
      const of = await book.records.type(name);
      if (of.kind !== "entity") throw invalid(`"${name}" is a relation: begin at an entity`);
      const relations = await Promise.all(via.map((each) => book.records.type(each)));
      const items = await book.records.traverse(of, from, {
        ...rest,
        via: relations as AnyRelation[],
        ...(then === undefined ? {} : { asOf: readMoment(then) }),
      });
      return { items };
    },
    show: ({ items }, { key: from }) =>
      table(
        items,
        {
          type: (each) => each.type,
          key: (each) => each.key,
          hops: (each) => each.hops,
          path: ({ path }) => [from, ...path.map(hopText)].join(" "),
        },
        { none: "It is connected with nothing.", least: ["hops"] },
      ),
  }),

  history: paged({
    words: "records history <type> <key...>",
    about: "list everything that happened to one record, the oldest first",
    input: { type, key },
    examples: ["records history order o-17"],
    async find(book, { type: name, key: words, after, ...rest }) {
      const of = await book.records.type(name);
      const { items, next } = await book.records.history(of, readKey(of, words), {
        ...rest,
        ...(after === undefined ? {} : { after: Number(after) }),
      });
      return { items, next: next === null ? null : String(next) };
    },
    columns: {
      what: (each) => each.kind,
      commit: (each) => each.commit,
      revision: (each) => each.revision,
      when: (each) => when(each.at),
      who: (each) => each.actor,
      document: (each) => (each.value === null ? null : JSON.stringify(each.value)),
    },
    none: "There never was such a record.",
    least: ["revision", "who"],
  }),

  diff: read({
    words: "records diff <from> <to>",
    http: "GET /record-differences",
    about: "list what is different at one moment from another",
    more: `Of a record that was updated only the fields that changed are shown, each on a line of its own; the
whole documents are in --json. A record that was changed back is no difference.`,
    input: {
      from: moment("a commit (its number, 0 before the first) or a time"),
      to: moment("a commit or a time"),
      type: maybe(text("only records of this type", "name")),
      ...page,
    },
    examples: ["records diff 16 17", "records diff 2026-11-01T00:00:00Z 2026-11-02T00:00:00Z --type order"],
    run: (book, input) =>
      pageOf(book, "differences", input, async ({ from, to, type: name, ...rest }) => {
        const only = name === undefined ? {} : { type: await book.records.type(name) };
        return book.records.diff(readMoment(from), readMoment(to), { ...rest, ...only });
      }),
    show: ({ items }) => changeTable(items, "Nothing is different."),
  }),

  ...ask,
  ...write,
  ...change,
};

function hopText({ relation, direction, from, to }: Reached["path"][number]): string {
  return direction === "out" ? `–${relation}→ ${to}` : `←${relation}– ${from}`;
}
