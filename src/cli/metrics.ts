// daybook metrics: what a scrape would find.
import type { Command } from "commander";
import { looking, withBook } from "./with-book.ts";

const example = `
The text is Prometheus' own, of the tenant that the book is seen as. Counters only grow, whatever
retention removes.

Example:
  $ daybook metrics --book home.db > /var/lib/node_exporter/daybook.prom`;

export function metrics(program: Command): void {
  program
    .command("metrics")
    .description("print metrics as Prometheus reads them")
    .addHelpText("after", example)
    .action((_options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const text = await book.metrics();
        return { json: { contentType: "text/plain; version=0.0.4", text }, text: () => text.trimEnd() };
      }),
    );
}
