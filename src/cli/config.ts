// daybook config: what the commands go by here, and who said so.
import type { Command } from "commander";
import type { Setting } from "./find-settings.ts";
import type { Answer } from "./with-book.ts";

const example = `
An option wins over the environment, and what "daybook run" reads from the config of the project over what
the book keeps. Passwords, tokens and keys are not shown. A book that can be read is asked for its zone
and its retention, and where the config says another, both are shown: commands such as "daybook retain" go
by the book's until a program with the config opens it. A server has its own.

Examples:
  $ daybook config
  $ daybook config --book shop.db --json`;

export function config(program: Command): void {
  program
    .command("config")
    .description("show what the commands go by here, such as the book and its tenant, and who said so")
    .option("--config <file>", "the config of the project (default: daybook.config.ts, if it is here)")
    .addHelpText("after", example)
    .action(async (options: { config?: string }, command: Command) => {
      // Imported when it runs: help needs none of it.
      const { findSettings } = await import("./find-settings.ts");
      const { printAnswer } = await import("./with-book.ts");
      await printAnswer(command, await answerOf(await findSettings(command, options.config)));
    });
}

async function answerOf(settings: readonly Setting[]): Promise<Answer> {
  const { render } = await import("../verbs/render.ts");
  const { table } = await import("../verbs/shown.ts");
  const { stdout } = process;
  const shown = table(settings, {
    setting: ({ name }) => name,
    value: ({ value }) => textOf(value),
    from: ({ from, book }) =>
      book === undefined ? from : `${from}; until it is opened so, the book says ${textOf(book)}`,
  });
  const width = stdout.isTTY ? stdout.columns : null;
  const colour = stdout.isTTY && stdout.hasColors();
  return { json: { settings }, text: () => render(shown, { width, colour, zone: "UTC", now: 0 }) };
}

function textOf(value: unknown): string | null {
  return value === null ? null : typeof value === "string" ? value : JSON.stringify(value);
}
