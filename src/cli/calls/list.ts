// daybook calls list: the newest first.
import type { Command } from "commander";
import type { CallFilter } from "../../calls/read-calls.ts";
import type { CallStatus } from "../../calls/call.ts";
import { callJson, callTable } from "../call-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Example:
  $ daybook calls list --book shop.db --status failed --tag billing`;

type Options = PageOptions & {
  readonly status?: string;
  readonly tag?: string;
  readonly host?: string;
  readonly name?: string;
  readonly correlation?: string;
};

export function listCalls(group: Command): void {
  const list = group
    .command("list")
    .description("list calls, the newest first")
    .option("--status <status>", "only of this status: scheduled, running, succeeded, failed, cancelled")
    .option("--tag <tag>", "only with this tag")
    .option("--host <host>", 'only to this host, as in the URL: "api.example.com", "localhost:8080"')
    .option("--name <name>", "only of this name")
    .option("--correlation <id>", "only with this correlation id");
  addPageOptions(list)
    .addHelpText("after", example)
    .action(({ status, correlation, ...options }: Options) =>
      withBook(list, looking, async (book) => {
        const filter: CallFilter = {
          ...options,
          ...(status === undefined ? {} : { status: status as CallStatus }),
          ...(correlation === undefined ? {} : { correlationId: correlation }),
        };
        const { items, next } = await book.calls.list(filter);
        return {
          json: { items: items.map(callJson), next },
          text: async () => {
            if (items.length === 0) return "There are no such calls, or none after that one.";
            return [await callTable(items), ...nextPage(list, next)].join("\n");
          },
        };
      }),
    );
}
