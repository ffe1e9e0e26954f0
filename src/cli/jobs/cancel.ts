// daybook jobs cancel: a job that has not started never will; one that runs is asked to end.
import type { Command } from "commander";
import { changing, withBook } from "../with-book.ts";

const example = `
A running job gets the signal and ends by itself; "daybook jobs show" says when it has. A job that
has ended is a conflict (exit code 5).

Example:
  $ daybook jobs cancel --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function cancelJob(jobs: Command): void {
  jobs
    .command("cancel")
    .description("cancel a job: one that waits never runs, one that runs is asked to end")
    .argument("<id>", "the id of the job")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const done = await book.jobs.cancel(id);
        return {
          json: done,
          text: () => (done.status === "cancelled" ? `${id} is cancelled` : `${id} runs and was asked to end`),
        };
      }),
    );
}
