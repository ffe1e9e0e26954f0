// daybook jobs retry: once more, beyond the attempts that were planned.
import type { Command } from "commander";
import { changing, withBook } from "../with-book.ts";

const example = `
A retry is a new job that continues the last one of the chain. A chain that is still open, or that
has completed, is a conflict (exit code 5).

Example:
  $ daybook jobs retry --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function retryJob(jobs: Command): void {
  jobs
    .command("retry")
    .description("try a failed or cancelled job again, also beyond its attempts")
    .argument("<id>", "the id of any job of the chain")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const made = await book.jobs.retry(id);
        return { json: made, text: () => `${made.id} tries again, ${made.status}` };
      }),
    );
}
