// daybook sessions show: what one process ran, all in all and by job, listener and schedule.
import type { Command } from "commander";
import { limits } from "../../core/limits.ts";
import { isoTime } from "../../core/time.ts";
import { plainCell, showTable } from "../show.ts";
import { lastErrorCell, ownerCell, summaryJson, tallyCells, tallyHead } from "../telemetry-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Example:
  $ daybook sessions show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function show(sessions: Command): void {
  sessions
    .command("show")
    .description("sum up what one session ran")
    .argument("<id>", "the id of the session")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const { since, until, ...all } = await book.telemetry.overview({ session: id });
        const { items } = await book.telemetry.summaries({ session: id, limit: limits.pageMax });
        return {
          json: { id, since: isoTime(since), until: isoTime(until), ...all, items: items.map(summaryJson) },
          text: async () => {
            const rows = [
              ["all", "", "", ...tallyCells(all), ""],
              ...items.map((each) => [
                ...[each.kind, plainCell(each.name, 32), ownerCell(each.app), ...tallyCells(each)],
                lastErrorCell(each.lastError),
              ]),
            ];
            const head = ["kind", "name", "app", ...tallyHead, "last error"];
            return `${isoTime(since)} to ${isoTime(until)}\n\n${await showTable(head, rows)}`;
          },
        };
      }),
    );
}
