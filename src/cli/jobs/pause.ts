// daybook jobs pause and resume: hold back all jobs of a name, whatever their queue.
import type { Command } from "commander";
import { plainCell } from "../show.ts";
import { changing, withBook } from "../with-book.ts";

const pauseExample = `
What runs goes on. To hold back a whole queue, see "daybook queues pause".

Example:
  $ daybook jobs pause --book shop.db send-receipt --note "the mail server is down"`;

const resumeExample = `
Example:
  $ daybook jobs resume --book shop.db send-receipt`;

export function pauseName(jobs: Command): void {
  jobs
    .command("pause")
    .description("start no more jobs of a name until it is resumed")
    .argument("<name>", "the name of the jobs")
    .option("--note <text>", "why; explain shows it")
    .addHelpText("after", pauseExample)
    .action((name: string, { note }: { note?: string }, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.jobs.pause(name, note);
        return { json: { name, paused: true, note: note ?? null }, text: () => `${plainCell(name, 200)} is paused` };
      }),
    );
}

export function resumeName(jobs: Command): void {
  jobs
    .command("resume")
    .description("let jobs of a name start again")
    .argument("<name>", "the name of the jobs")
    .addHelpText("after", resumeExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.jobs.resume(name);
        return { json: { name, paused: false }, text: () => `${plainCell(name, 200)} is not paused` };
      }),
    );
}
