// daybook calls curl: the request of a call as a command, without its secrets.
import type { Command } from "commander";
import { curlCommand } from "../call-words.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
What is secret is left out: put it back in where it says [redacted].

Example:
  $ daybook calls curl --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function curlCall(group: Command): void {
  group
    .command("curl")
    .description("print the request of a call as a curl command, without what is secret in it")
    .argument("<id>", "the id of the call")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const curl = curlCommand(await book.calls.get(id));
        return { json: { id, curl }, text: () => curl };
      }),
    );
}
