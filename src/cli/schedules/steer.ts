// daybook schedules pause, resume, remove and trigger.
import type { Command } from "commander";
import type { Book } from "../../book/book.ts";
import { scheduleJson } from "../schedule-words.ts";
import { showTime } from "../show.ts";
import { changing, withBook } from "../with-book.ts";

const pauseExample = `
Its jobs go on. What is due while it is paused is kept as one decision, and not made up for.

Example:
  $ daybook schedules pause --book shop.db receipts --note 'the mail server is moved'`;

const resumeExample = `
Example:
  $ daybook schedules resume --book shop.db receipts`;

const removeExample = `
Its jobs and its decisions stay. One that is defined in code comes back with it: remove it there, or
pause it (conflict, exit code 5).

Example:
  $ daybook schedules remove --book shop.db receipts`;

const triggerExample = `
Also while it is paused, and beside a job of it that runs. It counts as no slot and moves none.

Example:
  $ daybook schedules trigger --book shop.db receipts`;

export function steerSchedules(group: Command): void {
  named(group, "pause", "fire no more until it is resumed")
    .option("--note <text>", "why, for whoever looks")
    .addHelpText("after", pauseExample)
    .action((name: string, { note }: { note?: string }, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.schedules.pause(name, note);
        return { ...(await now(book, name)), text: () => `${name} is paused` };
      }),
    );
  named(group, "resume", "go on with the next slot")
    .addHelpText("after", resumeExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.schedules.resume(name);
        const { nextAt, json } = await now(book, name);
        const next = nextAt === null ? "is over" : `fires next ${showTime(nextAt).ago}`;
        return { json, text: () => `${name} is resumed and ${next}` };
      }),
    );
  named(group, "remove", "remove a schedule")
    .addHelpText("after", removeExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.schedules.remove(name);
        return { json: { name, removed: true }, text: () => `${name} is removed` };
      }),
    );
  named(group, "trigger", "fire once, now")
    .addHelpText("after", triggerExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const { jobId, eventId } = await book.schedules.trigger(name);
        const made = jobId === null ? `published event ${eventId}` : `made job ${jobId}`;
        return { json: { name, jobId, eventId }, text: () => `${name} ${made}` };
      }),
    );
}

function named(group: Command, verb: string, description: string): Command {
  return group.command(verb).description(description).argument("<name>", "the name of the schedule");
}

async function now(book: Book, name: string): Promise<{ json: Record<string, unknown>; nextAt: number | null }> {
  const schedule = await book.schedules.get(name);
  return { json: scheduleJson(schedule), nextAt: schedule.nextAt };
}
