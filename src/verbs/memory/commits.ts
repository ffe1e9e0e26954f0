// commits: what was changed in records, when, by whom and why.
import type { ChangeRecord, CommitRecord } from "../../index.ts";
import { paged } from "../list.ts";
import { whole } from "../field.ts";
import { changeTable } from "./record-view.ts";
import { asJson, fields, section, when, type Part } from "../shown.ts";
import { read } from "../verb.ts";

const commitColumns = {
  commit: ({ id }: CommitRecord) => id,
  when: ({ at }: CommitRecord) => when(at),
  changes: ({ changes }: CommitRecord) => changes,
  who: ({ actor }: CommitRecord) => actor,
  why: ({ reason }: CommitRecord) => reason,
};

export const commits = {
  list: paged({
    words: "commits list",
    http: "GET /commits",
    about: "list commits, the newest first",
    input: {},
    examples: ["commits list"],
    async find(book, { after, ...rest }) {
      const before = after === undefined ? {} : { before: Number(after) };
      const { items, next } = await book.records.commits({ ...rest, ...before });
      return { items, next: next === null ? null : String(next) };
    },
    columns: commitColumns,
    none: "There are no commits, or none before that one.",
    least: ["when"],
  }),

  show: read({
    words: "commits show <id>",
    http: "GET /commits/{id}",
    about: "show one commit and what it changed",
    more: "Of a record that was updated only the fields that changed are shown, each on a line of its own.",
    input: { id: whole("the number of the commit", 1, 1_000_000_000_000) },
    examples: ["commits show 17"],
    async run(book, { id }): Promise<CommitRecord & { items: readonly Omit<ChangeRecord, "commit" | "at">[] }> {
      const commit = await book.records.commit(id);
      const { items } = await book.records.since(id - 1, { limit: 1 });
      return { ...commit, items: items.map(({ commit: _commit, at: _at, ...change }) => change) };
    },
    show: ({ items, ...commit }) => [
      ...aboutCommit(commit),
      section(
        "changes",
        changeTable(
          items.map(({ value, ...change }) => ({ ...change, after: value })),
          "It changed nothing.",
        ),
      ),
    ],
  }),
};

function aboutCommit({ id, at, actor, reason, cause, metadata }: CommitRecord): Part[] {
  const facts = fields({
    commit: id,
    when: when(at),
    who: actor,
    why: reason,
    "caused by": cause === null ? null : `run ${cause.runId}`,
  });
  return [facts, ...(Object.keys(metadata).length === 0 ? [] : [section("metadata", asJson(metadata))])];
}
