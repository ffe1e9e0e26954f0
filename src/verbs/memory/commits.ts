// commits: what was changed in records, when, by whom and why.
import type { ChangeRecord, CommitRecord } from "../../index.ts";
import type { Page } from "../../core/page.ts";
import { maybe, text, time, whole } from "../field.ts";
import { paged, pageOf } from "../list.ts";
import { page } from "../shared-fields.ts";
import { changeTable } from "./record-view.ts";
import { asJson, fields, section, when, type Part } from "../shown.ts";
import { read } from "../verb.ts";

export const commits = {
  list: paged({
    words: "commits list",
    about: "list commits, the newest first",
    input: {
      actor: maybe(text("only those of this actor", "who")),
      since: maybe(time("only those made from then on, ISO 8601 with a zone")),
      until: maybe(time("only those made before then")),
      type: maybe(text("only those that changed records of this type", "name")),
    },
    examples: ["commits list --actor ada --since 2026-11-01T00:00:00Z --type order"],
    async find(book, { after, type: name, ...rest }) {
      const before = after === undefined ? {} : { before: Number(after) };
      const type = name === undefined ? {} : { type: await book.records.type(name) };
      const { items, next } = await book.records.commits({ ...rest, ...before, ...type });
      return { items, next: next === null ? null : String(next) };
    },
    columns: {
      commit: ({ id }) => id,
      when: ({ at }) => when(at),
      changes: ({ changes }) => changes,
      who: ({ actor }) => actor,
      why: ({ reason }) => reason,
    },
    none: "There are no such commits.",
    least: ["when"],
  }),

  show: read({
    words: "commits show <id>",
    about: "show one commit and what it changed",
    more: "Of a record that was updated only the fields that changed are shown, each on a line of its own.",
    input: {
      id: whole("the number of the commit", 1, 1_000_000_000_000),
      type: maybe(text("only its changes of this type", "name")),
      ...page,
    },
    examples: ["commits show 17"],
    async run(book, input): Promise<CommitRecord & Page<Omit<ChangeRecord, "commit" | "at">>> {
      const commit = await book.records.commit(input.id);
      const { items, next } = await pageOf(book, "changes", input, async ({ id, type: name, ...rest }) => {
        const only = name === undefined ? {} : { type: await book.records.type(name) };
        return book.records.changes(id, { ...rest, ...only });
      });
      return { ...commit, items: items.map(({ commit: _commit, at: _at, ...change }) => change), next };
    },
    show: ({ items, next: _next, ...commit }) => [
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
