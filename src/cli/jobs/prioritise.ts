// daybook jobs prioritise: another priority, for a job that has not started.
import type { Command } from "commander";
import { wholeNumber } from "../whole-number.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
The job goes behind those that have its new priority. One that runs or has ended is a conflict (exit
code 5).

Example:
  $ daybook jobs prioritise --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e 10`;

export function prioritiseJob(jobs: Command): void {
  jobs
    .command("prioritise")
    .description("give a job that has not started another priority")
    .argument("<id>", "the id of the job")
    .argument("<n>", "from -1000 to 1000, higher runs first", wholeNumber("priority"))
    .addHelpText("after", example)
    .action((id: string, priority: number, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const moved = await book.jobs.prioritise(id, priority);
        return { json: moved, text: () => `${id} has priority ${moved.priority}` };
      }),
    );
}
