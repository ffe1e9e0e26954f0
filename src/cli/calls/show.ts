// daybook calls show: one call with its timeline and every attempt.
import type { Command } from "commander";
import { callPage, detailsJson } from "../call-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Example:
  $ daybook calls show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function showCall(group: Command): void {
  group
    .command("show")
    .description("show a call with its timeline, its attempts and what they were answered")
    .argument("<id>", "the id of the call")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const call = await book.calls.get(id);
        return { json: detailsJson(call), text: () => callPage(call) };
      }),
    );
}
