// daybook retain: lets go of old telemetry.
import type { Command } from "commander";
import { isoTime } from "../core/time.ts";
import type { RetainOptions } from "../telemetry/retention/policy.ts";
import { showTable } from "./show.ts";
import { wholeNumber } from "./whole-number.ts";
import { changing, withBook } from "./with-book.ts";

const example = `
It says what would leave, and removes it with --apply. Processes that work do so every hour with the
defaults. Counts of what has left stay for --rollups; pinned runs stay; a job's run leaves with its
job, by "daybook prune". It works in slices, so others write in between, and may be interrupted.

Example:
  $ daybook retain --book home.db --runs 14d
  $ daybook retain --book home.db --bytes 200000000 --apply`;

type Options = Omit<RetainOptions, "dryRun"> & { readonly apply?: true };

export function retain(program: Command): void {
  program
    .command("retain")
    .description("remove old runs and log lines of live listeners and apps' schedules, and old counts")
    .option("--runs <duration>", "runs that are older than this (default: 7d)")
    .option("--logs <duration>", "log lines that are older than this (default: 3d)")
    .option("--rollups <duration>", "counts that are older than this (default: 400d)")
    .option("--bytes <n>", "the oldest, until runs and lines take about so much", wholeNumber("--bytes"))
    .option("--apply", "remove it, and do not only say it")
    .addHelpText("after", example)
    .action(({ apply, ...options }: Options, command: Command) =>
      withBook(command, changing, async (book) => {
        const done = await book.telemetry.retain({ ...options, dryRun: apply !== true });
        const evictions = await book.telemetry.evictions();
        return {
          json: {
            ...done,
            evictions: evictions.map((each) => ({ ...each, at: isoTime(each.at), until: isoTime(each.until) })),
          },
          text: async () => {
            const { runs, logs, rollups, jobs, dryRun } = done;
            const counts = `${runs} runs, ${logs} log lines, ${jobs} jobs of apps' schedules and ${rollups} counts`;
            const line = `${counts} ${dryRun ? "would be removed; remove them with --apply" : "removed"}`;
            if (evictions.length === 0) return line;
            const rows = evictions.map((each) => [
              ...[isoTime(each.at).slice(0, 10), each.what, each.reason, String(each.removed), isoTime(each.until)],
            ]);
            return `${line}\n\n${await showTable(["removed on", "what", "by", "rows", "until"], rows)}`;
          },
        };
      }),
    );
}
