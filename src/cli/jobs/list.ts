// daybook jobs list: which jobs there are, by their state, queue, name, key or tag.
import type { Command } from "commander";
import type { JobFilter, JobPage } from "../../jobs/list.ts";
import type { Answer } from "../answer.ts";
import { jobJson, jobTable } from "../job-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
A job is waiting (for a time, a key, a host …), queued (it may run now), running, completed, failed,
cancelled or skipped. A retry is a job of its own, so one that failed may have been tried again since.

Example:
  $ daybook jobs list --book shop.db --status failed,cancelled --name send-receipt
  $ daybook jobs list --book shop.db --status failed --not-retried
  $ daybook jobs list --book shop.db --status waiting --json | jq '.items[].waitsFor'`;

type Options = PageOptions &
  Pick<JobFilter, "queue" | "name" | "key" | "tag"> & {
    readonly status?: string;
    readonly notRetried?: true;
  };

export function listJobs(jobs: Command): void {
  const command = jobs
    .command("list")
    .description("list jobs, newest first")
    .option("--status <list>", "only jobs in these states, separated by commas")
    .option("--queue <queue>", "only jobs of this queue")
    .option("--name <name>", "only jobs of this name")
    .option("--key <key>", "only jobs that were enqueued with this key")
    .option("--tag <tag>", "only jobs with this tag")
    .option("--not-retried", "leave out those that were tried again: what failed has failed for good");
  addPageOptions(command)
    .addHelpText("after", example)
    .action(({ status, notRetried, ...rest }: Options) =>
      withBook(command, looking, async (book) => {
        // What is not a state is refused by the list itself, with those that are.
        const states = status?.split(",").map((each) => each.trim()) as JobFilter["status"];
        return toAnswer(
          command,
          await book.jobs.list({
            ...rest,
            ...(states === undefined ? {} : { status: states }),
            ...(notRetried === undefined ? {} : { retried: false }),
          }),
        );
      }),
    );
}

function toAnswer(command: Command, { items, next }: JobPage): Answer {
  return {
    json: { items: items.map(jobJson), next },
    text: async () => {
      if (items.length === 0) return "There are no such jobs, or none before that cursor.";
      return [await jobTable(items), ...nextPage(command, next)].join("\n");
    },
  };
}
