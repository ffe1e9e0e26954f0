// daybook runs pin and unpin: whether retention may remove a run.
import type { Command } from "commander";
import { changing, withBook } from "../with-book.ts";

const example = `
A pinned run stays, with its log lines and its job, whatever "daybook retain" and "daybook prune" are told.

Example:
  $ daybook runs pin --book home.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e --note "the night it stayed dark"`;

export function pin(runs: Command): void {
  runs
    .command("pin")
    .description("keep a run from being removed")
    .argument("<id>", "the id of the run")
    .option("--note <text>", "why")
    .addHelpText("after", example)
    .action((id: string, { note }: { readonly note?: string }, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.runs.pin(id, note === undefined ? {} : { note });
        return { json: { id, pinned: true }, text: () => `run ${id} is pinned` };
      }),
    );
  runs
    .command("unpin")
    .description("let a pinned run leave in its time")
    .argument("<id>", "the id of the run")
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const was = await book.runs.unpin(id);
        return {
          json: { id, pinned: false, wasPinned: was },
          text: () => (was ? `run ${id} is no longer pinned` : `run ${id} was not pinned`),
        };
      }),
    );
}
