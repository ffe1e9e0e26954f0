// daybook prune: finished jobs leave, with all that is theirs.
import type { Command } from "commander";
import { invalid } from "../core/error.ts";
import type { PruneOptions, Pruned } from "../jobs/prune/prune.ts";
import type { Answer } from "./answer.ts";
import { wholeNumber } from "./whole-number.ts";
import { changing, withBook } from "./with-book.ts";

const example = `
It says what would leave, and removes it with --apply. With --older-than and --keep together, only
what is old enough and not among the newest leaves. Retries leave with their job, and a group as a
whole. It works in slices, so others write in between, and may be interrupted and repeated. Log files
of programs are deleted if they are in the book's folder for files.

Example:
  $ daybook prune --book shop.db --older-than 30d --keep 1000
  $ daybook prune --book shop.db --older-than 7d --queue mail --status completed,cancelled --apply`;

type Options = Pick<PruneOptions, "olderThan" | "keep" | "queue" | "name"> & {
  readonly apply?: true;
  readonly status?: string;
  readonly files?: string;
};

export function prune(program: Command): void {
  program
    .command("prune")
    .description("remove finished jobs of the tenant with their runs, logs, calls and files")
    .option("--older-than <duration>", "only what ended at least this long ago: 30d, 12h")
    .option("--keep <n>", "not the so many that ended last", wholeNumber("--keep"))
    .option("--queue <queue>", "only jobs of this queue")
    .option("--name <name>", "only jobs of this name")
    .option("--status <list>", "only jobs that ended so, separated by commas: completed, failed, cancelled, skipped")
    .option("--files <folder>", 'the book\'s folder for files, if its programs open it with "files"')
    .option("--apply", "remove it, and do not only say it")
    .addHelpText("after", example)
    .action(({ status, files, apply, ...given }: Options, command: Command) => {
      if (given.olderThan === undefined && given.keep === undefined)
        throw invalid("give --older-than or --keep, or both");
      const rest = { ...given, dryRun: apply !== true };
      // What is not an end is refused by the library, with those that are.
      const states = status?.split(",").map((each) => each.trim()) as PruneOptions["status"];
      const access = { ...changing, ...(files === undefined ? {} : { files }) };
      return withBook(command, access, async (book) =>
        toAnswer(await book.jobs.prune({ ...rest, ...(states === undefined ? {} : { status: states }) })),
      );
    });
}

function toAnswer(pruned: Pruned): Answer {
  const { dryRun, jobs, groups, runs, logs, steps, reservations, others, files, filesDeleted } = pruned;
  const [were, rest] = [dryRun ? "would be removed" : "removed", files.length - filesDeleted];
  const kept = Object.entries(others).map(([kind, count]) => `, ${count} ${kind}s`);
  const held = `${kept.join("")}${reservations === 0 ? "" : `, ${reservations} reservations`}`;
  const counts = `${jobs} jobs, ${groups} groups, ${runs} runs${held}, ${logs} log lines and ${steps} steps ${were}`;
  const gone = `${filesDeleted} log files deleted${rest === 0 ? "" : `, ${rest} were not there or elsewhere`}`;
  const named = dryRun ? `${files.length} log files go with them` : gone;
  const hint = dryRun ? "; remove them with --apply" : "";
  return { json: pruned, text: () => `${files.length === 0 ? counts : `${counts}; ${named}`}${hint}` };
}
