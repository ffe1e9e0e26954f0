// daybook mend: puts right what doctor finds and a rule can mend.
import type { Command } from "commander";
import type { Mended } from "../book/mend.ts";
import type { Answer } from "./answer.ts";
import { changing, looking, withBook } from "./with-book.ts";

const example = `
A clock that was wrong leaves times that no rule explains: a job that waits longer than its own delay, a
schedule that has decided slots still to come, a reservation that lasts for a year. A program that is
open meanwhile mends them by itself once the clock is right; this is for a book that none had open. It
says what it would mend, and mends it with --apply: delays count from now. See first that the clock
of this machine is right. It is about all tenants.

Example:
  $ daybook mend --book shop.db
  $ daybook mend --book shop.db --apply`;

export function mend(program: Command): void {
  program
    .command("mend")
    .description("say which times a wrong clock has left in the book, and with --apply put them right")
    .option("--apply", "do it, and do not only say it")
    .addHelpText("after", example)
    .action(({ apply }: { apply?: true }, command: Command) =>
      withBook(command, apply === true ? changing : looking, async (book) =>
        toAnswer(await book.mend({ dryRun: apply !== true })),
      ),
    );
}

function toAnswer(done: Mended): Answer {
  return { json: done, text: () => inWords(done) };
}

function inWords({ dryRun, mended }: Mended): string {
  if (mended.length === 0) return "nothing to mend";
  const lines = mended.map(({ name, count }) => `${count} against "${name}"`);
  return [...lines, dryRun ? "mend them with --apply" : "mended"].join("\n");
}
