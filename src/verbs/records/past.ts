// records history and diff: how what is known came to be.
import type { Version } from "../../index.ts";
import { paged } from "../cursor.ts";
import { maybe, page, text } from "../field.ts";
import { key, moment, readKey, readMoment, type } from "../record-field.ts";
import { changeTable } from "../record-view.ts";
import { table, time } from "../shown.ts";
import { verb } from "../verb.ts";

export const past = {
  history: verb({
    words: "records history <type> <key...>",
    http: "GET /records/{type}/history",
    role: "read",
    about: "list everything that happened to one record, the oldest first",
    input: { type, key, ...page },
    examples: ["records history order o-17"],
    run: (book, { type: name, ...input }) =>
      paged(book, `history of ${name}`, input, async ({ key: words, after, ...rest }) => {
        const of = await book.records.type(name);
        const { items, next } = await book.records.history(of, readKey(of, words), {
          ...rest,
          ...(after === undefined ? {} : { after: Number(after) }),
        });
        return { items, next: next === null ? null : String(next) };
      }),
    show: ({ items }) =>
      table(items, versionColumns, { none: "There never was such a record.", least: ["revision", "who"] }),
  }),

  diff: verb({
    words: "records diff <from> <to>",
    http: "GET /record-differences",
    role: "read",
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
      paged(book, "differences", input, async ({ from, to, type: name, ...rest }) => {
        const only = name === undefined ? {} : { type: await book.records.type(name) };
        return book.records.diff(readMoment(from), readMoment(to), { ...rest, ...only });
      }),
    show: ({ items }) => changeTable(items, "Nothing is different."),
  }),
};

const versionColumns = {
  what: (each: Version) => each.kind,
  commit: (each: Version) => each.commit,
  revision: (each: Version) => each.revision,
  when: (each: Version) => time(each.at),
  who: (each: Version) => each.actor,
  document: (each: Version) => (each.value === null ? null : JSON.stringify(each.value)),
};
