// daybook schedules add and edit: when, what and how.
import type { Command } from "commander";
import type { Made } from "../../schedules/schedules.ts";
import type { Answer } from "../answer.ts";
import { addHowOptions, addWhenOptions, toChanges, toOptions, type Given } from "../schedule-options.ts";
import { scheduleJson, scheduleWords } from "../schedule-words.ts";
import { changing, withBook } from "../with-book.ts";

const addExample = `
Give one of --cron, --every, --daily, --at, --in, and one of --job, --template, --event. A job gets the
settings that the program which runs it wrote to the book; one that was never hosted gets them once a program
hosts it. Slots before now are not caught up on.

Example:
  $ daybook schedules add --book shop.db receipts --daily 07:00 --zone Europe/Madrid --job send-receipts
  $ daybook schedules add --book shop.db poll --every 90s --template poll-orders --concurrency queue
  $ daybook schedules add --book shop.db month-end --cron '0 18 LW * *' --job close-month --missed all
  $ daybook schedules add --book shop.db dusk --daily 18:30 --event house.dusk --payload '{"lights":"on"}'`;

const editExample = `
What is not given stays, and "none" takes a setting back. Slots before the edit are not caught up on.
One that is defined in code is edited there (conflict, exit code 5); preview shows an edit before it is
made.

Example:
  $ daybook schedules edit --book shop.db receipts --daily 06:30 --jitter none`;

export function addSchedule(group: Command): void {
  const add = group
    .command("add")
    .description("make a schedule")
    .argument("<name>", "the name of the schedule, unique within the tenant");
  addHowOptions(addWhenOptions(add))
    .addHelpText("after", addExample)
    .action(async (name: string, given: Given) => {
      const options = await toOptions(given);
      await withBook(add, changing, async (book) => toAnswer(await book.schedules.create(name, options)));
    });
}

export function editSchedule(group: Command): void {
  const edit = group
    .command("edit")
    .description("change a schedule; jobs that exist stay as they are")
    .argument("<name>", "the name of the schedule");
  addHowOptions(addWhenOptions(edit, ', or "none"'), ', or "none"')
    .addHelpText("after", editExample)
    .action(async (name: string, given: Given) => {
      const changes = await toChanges(given);
      await withBook(edit, changing, async (book) => toAnswer(await book.schedules.edit(name, changes)));
    });
}

// No definition is ever known to a command, so the library's warning about that would say nothing.
function toAnswer({ warning: _warning, ...schedule }: Made): Answer {
  return { json: scheduleJson(schedule), text: () => scheduleWords(schedule) };
}
