// daybook jobs list: which jobs there are, by their state, what they are, what made them, and when.
import type { Command } from "commander";
import type { JobFilter, JobPage } from "../../jobs/list.ts";
import type { Answer } from "../answer.ts";
import { jobJson, jobTable } from "../job-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
A job is waiting (for a time, a key, a host …), queued (it may run now), running, completed, failed,
cancelled or skipped. A retry is a job of its own, so one that failed may have been tried again since.

A list has jobs that were enqueued (job), fired by a schedule (schedule) or run directly (direct). What
events and calls are made of is listed when --kind asks for it (delivery, catch_up, call, or all), or
when --name names it.

Example:
  $ daybook jobs list --book shop.db --status failed,cancelled --name send-receipt
  $ daybook jobs list --book shop.db --status failed --not-retried
  $ daybook jobs list --book shop.db --schedule nightly --since 7d
  $ daybook jobs list --book shop.db --kind delivery,call --status running
  $ daybook jobs list --book shop.db --status waiting --json | jq '.items[].waitsFor'`;

type Options = PageOptions &
  Pick<JobFilter, "queue" | "name" | "key" | "tag" | "group" | "schedule" | "template" | "since" | "until"> & {
    readonly status?: string;
    readonly kind?: string;
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
    .option("--group <id>", "only jobs of this group")
    .option("--schedule <name>", "only what this schedule has fired")
    .option("--template <name>", "only jobs that were made from this template")
    .option("--kind <list>", "only these kinds, separated by commas, or all (default: job,schedule,direct)")
    .option("--since <time>", "only those made from then on: an ISO time, or how long ago, such as 24h")
    .option("--until <time>", "only those made before then")
    .option("--not-retried", "leave out those that were tried again: what failed has failed for good");
  addPageOptions(command)
    .addHelpText("after", example)
    .action(({ status, kind, notRetried, ...rest }: Options) =>
      withBook(command, looking, async (book) => {
        // What is not a state or a kind is refused by the list itself, with those that are.
        const filter = {
          ...rest,
          ...(status === undefined ? {} : { status: split(status) }),
          ...(kind === undefined ? {} : { kind: split(kind) }),
          ...(notRetried === undefined ? {} : { retried: false }),
        } as JobFilter;
        return toAnswer(command, await book.jobs.list(filter));
      }),
    );
}

function split(list: string): string[] {
  return list.split(",").map((each) => each.trim());
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
