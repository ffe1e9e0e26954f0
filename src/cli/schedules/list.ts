// daybook schedules list: by name, with what comes next.
import type { Command } from "commander";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { scheduleJson, scheduleTable } from "../schedule-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Example:
  $ daybook schedules list --book shop.db`;

export function listSchedules(group: Command): void {
  const list = group.command("list").description("list schedules by name");
  addPageOptions(list)
    .addHelpText("after", example)
    .action((page: PageOptions) =>
      withBook(list, looking, async (book) => {
        const { items, next } = await book.schedules.list(page);
        return {
          json: { items: items.map(scheduleJson), next },
          text: async () => {
            if (items.length === 0) return "There are no such schedules, or none after that name.";
            return [await scheduleTable(items), ...nextPage(list, next)].join("\n");
          },
        };
      }),
    );
}
