// daybook schedules preview: the next fires, of a schedule, of an edit, or of one that is not there yet.
import type { Command } from "commander";
import type { Book } from "../../book/book.ts";
import type { Answer } from "../answer.ts";
import { addWhenOptions, toChanges, toTiming, type Given } from "../schedule-options.ts";
import { fireJson, fireTable } from "../schedule-words.ts";
import { wholeNumber } from "../whole-number.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
With a name and something to change, the fires are shown as they are and as they would be; nothing is
saved. Without a name, those of the options. Each fire stands there in UTC, on the clock of the
schedule and on yours, and a mark says when a clock is changed that day.

Example:
  $ daybook schedules preview --book shop.db receipts --count 3
  $ daybook schedules preview --book shop.db receipts --daily 06:30
  $ daybook schedules preview --book shop.db --cron '30 2 * * *' --zone Europe/Madrid --after 2026-03-28T00:00:00Z`;

type Look = { readonly count: number; readonly here: string; readonly after?: string };

export function previewSchedule(group: Command): void {
  const preview = group
    .command("preview")
    .description("show the next fires, also of an edit or a schedule that is not saved")
    .argument("[name]", "the name of the schedule");
  addWhenOptions(preview, ', or "none"')
    .option("--count <n>", "how many, at most 1000", wholeNumber("--count"), 10)
    .option("--here <zone>", "the zone of your own clock (default: that of the system)")
    .option("--after <time>", "fires after this time (default: now)")
    .addHelpText("after", example)
    .action(async (name: string | undefined, { count, here, after, ...given }: Given & Partial<Look>) => {
      const look = {
        count: count ?? 10,
        here: here ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
        ...(after === undefined ? {} : { after }),
      };
      await withBook(preview, looking, (book) => answer(book, name, given, look));
    });
}

async function answer(book: Book, name: string | undefined, given: Given, look: Look): Promise<Answer> {
  const { count, here: zone } = look;
  const options = { count, zone, ...(look.after === undefined ? {} : { after: look.after }) };
  const fires = await book.schedules.preview(name ?? (await toTiming(given)), options);
  if (name === undefined || Object.keys(given).length === 0) {
    return { json: { fires: fires.map(fireJson) }, text: () => table(fires, zone) };
  }
  const after = await book.schedules.preview(name, { ...options, edit: await toChanges(given) });
  return {
    json: { before: fires.map(fireJson), after: after.map(fireJson) },
    text: async () => `as it is\n${await table(fires, zone)}\n\nas it would be\n${await table(after, zone)}`,
  };
}

async function table(fires: Parameters<typeof fireTable>[0], here: string): Promise<string> {
  return fires.length === 0 ? "It does not fire any more." : fireTable(fires, here);
}
