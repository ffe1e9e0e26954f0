// daybook events cleanup: events leave by age.
import type { Command } from "commander";
import { invalid } from "../../core/error.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
What a listener has not finished stays, and is counted; so does the last event of the book.

Example:
  $ daybook events cleanup --book shop.db --older-than 90d --dry-run`;

export function cleanEvents(group: Command): void {
  group
    .command("cleanup")
    .description("remove events that are old and finished")
    .option("--older-than <duration>", "only what was published at least this long ago: 90d")
    .option("--dry-run", "only say what would be removed")
    .addHelpText("after", example)
    .action(({ olderThan, dryRun }: { olderThan?: string; dryRun?: true }, command: Command) => {
      if (olderThan === undefined) throw invalid("give --older-than, such as --older-than 90d");
      return withBook(command, changing, async (book) => {
        const done = await book.events.cleanup({ olderThan, ...(dryRun === undefined ? {} : { dryRun }) });
        const { removed, kept } = done;
        const stays = [
          [kept.unfinished, "have deliveries that have not ended"],
          [kept.deadLettered, "have dead letters"],
          [kept.unheard, "have not been heard by a listener that catches up"],
        ] as const;
        return {
          json: { dryRun: dryRun ?? false, ...done },
          text: () =>
            [
              `${removed} events ${dryRun === true ? "would be removed" : "removed"}`,
              ...stays.filter(([count]) => count > 0).map(([count, why]) => `${count} stay: they ${why}`),
            ].join("\n"),
        };
      });
    });
}
