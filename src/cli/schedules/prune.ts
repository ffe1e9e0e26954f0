// daybook schedules prune: old decisions leave.
import type { Command } from "commander";
import { changing, withBook } from "../with-book.ts";

const example = `
A decision stays while its job, or a retry of it, has not ended. No slot is fired again because of it,
but why has no answer for what has left, and backfill refuses it.

Example:
  $ daybook schedules prune --book shop.db --older-than 90d --dry-run`;

export function pruneSchedules(group: Command): void {
  group
    .command("prune")
    .description("remove old decisions of the tenant's schedules")
    .requiredOption("--older-than <duration>", "only those that were made at least this long ago: 90d, 12h")
    .option("--dry-run", "say how many would be removed, and remove none")
    .addHelpText("after", example)
    .action((options: { olderThan: string; dryRun?: true }, command: Command) =>
      withBook(command, changing, async (book) => {
        const { dryRun, decisions } = await book.schedules.prune(options);
        const were = dryRun ? "would be removed" : "removed";
        return {
          json: { dryRun, decisions },
          text: () => `${decisions} ${decisions === 1 ? "decision" : "decisions"} ${were}`,
        };
      }),
    );
}
