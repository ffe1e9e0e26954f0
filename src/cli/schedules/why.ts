// daybook schedules why: why a schedule did, or did not, run at a time.
import type { Command } from "commander";
import { decisionJson } from "../schedule-words.ts";
import { plainCell } from "../show.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
A time that is a whole minute stands for the minute.

Example:
  $ daybook schedules why --book shop.db receipts 2026-03-29T05:00:00Z`;

export function whySchedule(group: Command): void {
  group
    .command("why")
    .description("say why a schedule did, or did not, run at a time")
    .argument("<name>", "the name of the schedule")
    .argument("<time>", "ISO 8601 with a zone")
    .addHelpText("after", example)
    .action((name: string, time: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const { isSlot, decision, because } = await book.schedules.why(name, time);
        return {
          json: { isSlot, decision: decision === null ? null : decisionJson(decision), because },
          text: () => [decision?.kind ?? "no decision", ...because.map((each) => plainCell(each, 500))].join("\n"),
        };
      }),
    );
}
