// daybook schedules show: one schedule and its newest decisions.
import type { Command } from "commander";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { decisionJson, decisionTable, scheduleJson, scheduleWords } from "../schedule-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
--limit and --after page through the decisions.

Example:
  $ daybook schedules show --book shop.db receipts --limit 5`;

export function showSchedule(group: Command): void {
  const show = group
    .command("show")
    .description("show one schedule, and what was made of its newest slots")
    .argument("<name>", "the name of the schedule");
  addPageOptions(show)
    .addHelpText("after", example)
    .action((name: string, page: PageOptions) =>
      withBook(show, looking, async (book) => {
        const schedule = await book.schedules.get(name);
        const { items, next } = await book.schedules.decisions(name, page);
        return {
          json: { ...scheduleJson(schedule), decisions: { items: items.map(decisionJson), next } },
          text: async () => {
            const about = await scheduleWords(schedule);
            if (items.length === 0) return `${about}\n\nNo slot has been decided.`;
            return [about, "", await decisionTable(items), ...nextPage(show, next)].join("\n");
          },
        };
      }),
    );
}
