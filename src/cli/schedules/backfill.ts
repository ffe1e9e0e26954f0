// daybook schedules backfill: fires what a stretch of the past has missed.
import type { Command } from "commander";
import { isoTime } from "../../core/time.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
Slots that were fired before are not fired again, and what was skipped is fired now. The jobs are made
all at once, whatever the schedule says about concurrency.

Example:
  $ daybook schedules backfill --book shop.db receipts 2026-03-01T00:00:00Z 2026-03-08T00:00:00Z --dry-run`;

export function backfillSchedule(group: Command): void {
  group
    .command("backfill")
    .description("fire the slots of a stretch of the past that were not fired")
    .argument("<name>", "the name of the schedule")
    .argument("<from>", "the first moment, ISO 8601 with a zone")
    .argument("<to>", "the last moment, not in the future")
    .option("--dry-run", "only say which slots would be fired")
    .addHelpText("after", example)
    .action((name: string, from: string, to: string, options: { dryRun?: true }, command: Command) =>
      withBook(command, changing, async (book) => {
        const done = await book.schedules.backfill(name, from, to, options);
        const { dryRun, already } = done;
        const slots = done.slots.map(isoTime);
        return {
          json: { dryRun, slots, already },
          text: () =>
            [
              `${slots.length} ${slots.length === 1 ? "slot" : "slots"} ${dryRun ? "would be" : "are"} fired; ` +
                `${already} had been before.`,
              ...slots,
            ].join("\n"),
        };
      }),
    );
}
