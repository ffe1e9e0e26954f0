// daybook commits: what was changed in records, when, by whom and why.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import type { ChangeRecord } from "../records/feed.ts";
import type { Answer } from "./answer.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { commitJson, showKey } from "./record-words.ts";
import { plainCell, showFields, showJson, showTable, showTime, timeCell } from "./show.ts";
import { wholeNumber } from "./whole-number.ts";
import { looking, withBook } from "./with-book.ts";

const groupExample = `
Commits are numbered for each tenant, from 1 and without gaps.

Example:
  $ daybook commits list --book shop.db
  $ daybook commits show --book shop.db 17`;

export function commits(program: Command): void {
  const group = program
    .command("commits")
    .description("list and show commits: what was changed in records, by whom and why")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  const list = group.command("list").description("list commits, the newest first");
  addPageOptions(list).action(({ limit, after }: PageOptions) =>
    withBook(list, looking, async (book) => {
      const before = after === undefined ? {} : { before: wholeNumber("--after")(after) };
      const { items, next } = await book.records.commits({ limit, ...before });
      const rows = items.map(({ id, at, changes, actor, reason }) => [
        String(id),
        timeCell(at),
        String(changes),
        plainCell(actor ?? ""),
        plainCell(reason ?? ""),
      ]);
      return {
        json: { items: items.map(commitJson), next },
        text: async () => {
          if (items.length === 0) return "There are no commits, or none before that one.";
          const table = await showTable(["commit", "when", "changes", "who", "why"], rows);
          return [table, ...nextPage(list, next === null ? null : String(next))].join("\n");
        },
      };
    }),
  );
  const show = group
    .command("show")
    .description("show one commit and what it changed")
    .argument("<id>", "the number of the commit", wholeNumber("commit"));
  show.action((id: number) => withBook(show, looking, (book) => showCommit(book, id)));
}

async function showCommit(book: Book, id: number): Promise<Answer> {
  const commit = await book.records.commit(id);
  const { items } = await book.records.since(id - 1, { limit: 1 });
  const { ago, exact } = showTime(commit.at);
  const fields: (readonly [string, string | null])[] = [
    ["commit", String(id)],
    ["when", `${exact} (${ago})`],
    ["who", commit.actor],
    ["why", commit.reason],
    ["caused by", commit.cause === null ? null : `run ${commit.cause.runId}`],
  ];
  return {
    json: { ...commitJson(commit), items: items.map(({ commit: _commit, at: _at, ...change }) => change) },
    text: async () => {
      const about = await showFields(
        fields
          .filter((field): field is readonly [string, string] => field[1] !== null)
          .map(([name, value]) => [name, plainCell(value, 200)]),
      );
      const metadata = Object.keys(commit.metadata).length === 0 ? [] : [`metadata\n${showJson(commit.metadata)}`];
      return [about, ...metadata, await changeTable(items)].join("\n\n");
    },
  };
}

function changeTable(items: readonly ChangeRecord[]): Promise<string> {
  return showTable(
    ["what", "type", "key", "revision", "document"],
    items.map(({ kind, type, key, revision, value }) => [
      kind,
      type,
      showKey(key),
      String(revision),
      value === null ? "" : plainCell(JSON.stringify(value)),
    ]),
  );
}
