// daybook errors: what goes wrong, each error once, the latest first.
import type { Command } from "commander";
import { isoTime } from "../core/time.ts";
import type { ScopeOptions } from "../telemetry/report/scope.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { addScopeOptions, scopeOf } from "./scope-options.ts";
import { plainCell, showTable, timeCell } from "./show.ts";
import { lastErrorJson, ownerCell } from "./telemetry-words.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
Errors of one type whose messages differ only in numbers, ids and quoted values count as one. They are
known by name also when their runs have left. What is shown of the last is of one run: see it with
"daybook runs show".

Example:
  $ daybook errors --book home.db --app kitchen --since 7d`;

export function errors(program: Command): void {
  const command = program
    .command("errors")
    .description("list errors that look alike as one, the one that happened last first");
  addScopeOptions(command);
  addPageOptions(command)
    .addHelpText("after", example)
    .action(({ limit, after, ...options }: Omit<ScopeOptions, "session"> & PageOptions) =>
      withBook(command, looking, async (book) => {
        const page = { limit, ...(after === undefined ? {} : { after }) };
        const { items, next } = await book.telemetry.errors({ ...scopeOf(options), ...page });
        return {
          json: {
            items: items.map((each) => ({
              ...{ ...each, firstAt: isoTime(each.firstAt), last: lastErrorJson(each.last) },
            })),
            next,
          },
          text: async () => {
            if (items.length === 0) return "There were no errors in that time.";
            const rows = items.map(({ kind, name, app, runs, last }) => [
              ...[String(runs), timeCell(last.at), kind, plainCell(name, 32), ownerCell(app)],
              ...[plainCell(`${last.type}: ${last.message}`, 60), last.runId],
            ]);
            const head = ["times", "last", "kind", "name", "app", "error", "last run"];
            return [await showTable(head, rows), ...nextPage(command, next)].join("\n");
          },
        };
      }),
    );
}
