// daybook logs: what runs wrote about themselves.
import type { Command } from "commander";
import { isoTime } from "../core/time.ts";
import type { LogEntry, LogFilter } from "../telemetry/report/logs.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { addTimeOptions } from "./scope-options.ts";
import { plainCell } from "./show.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
The newest line comes first. The lines of one run, in their order, are in "daybook runs show".

Example:
  $ daybook logs --book home.db --level warn --name lights --since 1h`;

export function logs(program: Command): void {
  const command = program.command("logs").description("list the lines that runs have logged, newest first");
  addTimeOptions(command)
    .option("--level <level>", "this level and those above it: debug, info, warn, error")
    .option("--name <name>", "only of the job, listener or schedule of this name")
    .option("--app <key>", "only of this app");
  addPageOptions(command)
    .addHelpText("after", example)
    .action((options: LogFilter & PageOptions) =>
      withBook(command, looking, async (book) => {
        const { items, next } = await book.telemetry.logs(options);
        return {
          json: { items: items.map((line) => ({ ...line, at: isoTime(line.at) })), next },
          text: () =>
            items.length === 0
              ? "There are no such lines."
              : [...items.map(toLine), ...nextPage(command, next)].join("\n"),
        };
      }),
    );
}

function toLine({ at, level, name, message, fields }: LogEntry): string {
  const more = fields === null ? "" : ` ${plainCell(JSON.stringify(fields), 500)}`;
  return `${isoTime(at)} ${level.padEnd(5)} ${plainCell(name ?? "", 32)}: ${plainCell(message, 1000)}${more}`;
}
