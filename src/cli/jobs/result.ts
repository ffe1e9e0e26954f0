// daybook jobs result: what the handler of a job returned, now or as soon as there is something.
import type { Command } from "commander";
import type { Book } from "../../book.ts";
import { invalid } from "../../core/error.ts";
import type { AwaitOptions } from "../../jobs/result.ts";
import type { Answer } from "../answer.ts";
import { pureJson } from "../show.ts";
import { changing, withBook } from "../with-book.ts";

/** Above the exit codes of errors: nothing is wrong, it is only too early. */
const exitOpen = 21;

const example = `
Prints the result as JSON, or null when there is none. A retry belongs to its job: the result is that
of the last one. Without --wait a job that has not ended is told so, with exit code ${exitOpen}. One that
failed for good or was cancelled is a conflict (5), and one that has not ended in time a timeout (10).

Example:
  $ daybook jobs result --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e --wait --timeout 30s
  $ daybook jobs result --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e | jq .cents`;

type Options = AwaitOptions & { readonly wait?: true };

export function resultOfJob(jobs: Command): void {
  jobs
    .command("result")
    .description("print what a job returned, and wait for it if asked to")
    .argument("<id>", "the id of the job")
    .option("--wait", "wait until the job has ended with all its retries")
    .option("--timeout <duration>", "with --wait: how long, such as 30s (default: without limit)")
    .addHelpText("after", example)
    .action((id: string, { wait, ...options }: Options, command: Command) => {
      if (wait === undefined && options.timeout !== undefined) throw invalid("--timeout is for --wait: give both");
      return withBook(command, changing, async (book) => {
        if (wait === true) return toAnswer(id, await book.jobs.result(id, options));
        return (await openAnswer(book, id)) ?? toAnswer(id, await book.jobs.result(id, { timeout: 0 }));
      });
    });
}

function toAnswer(id: string, given: unknown): Answer {
  const result = given ?? null;
  return { json: { id, status: "completed", result }, text: () => pureJson(result) };
}

async function openAnswer(book: Book, id: string): Promise<Answer | undefined> {
  const last = (await book.jobs.chain(id)).at(-1);
  if (last === undefined || last.finishedAt !== null) return undefined;
  const { status } = last;
  const which = last.id === id ? id : `${id} is tried again by ${last.id}, which`;
  return {
    json: { id, status, result: null },
    text: () => `${which} is ${status}, so there is no result yet: wait for it with --wait`,
    exit: exitOpen,
  };
}
