// daybook groups add: one more job behind those of an open group.
import type { Command } from "commander";
import type { EnqueueOptions } from "../../jobs/define.ts";
import { readParams } from "../read-params.ts";
import { wholeNumber } from "../whole-number.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
A group that has ended, or is about to, is a conflict (exit code 5).

Example:
  $ daybook groups add --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e send-report --params '{"to": "ada"}'`;

type Options = Pick<EnqueueOptions, "queue" | "priority" | "attempts" | "timeout" | "in"> & {
  readonly params?: string;
  readonly config?: string;
};

export function addToGroup(groups: Command): void {
  groups
    .command("add")
    .description("add a job behind those of an open group")
    .argument("<id>", "the id of the group")
    .argument("<name>", "the name of the job")
    .option("--params <json>", 'the params as JSON, "@file" to read them from a file, "-" from standard input')
    .option("--queue <queue>", 'the queue (default: "default")')
    .option("--priority <n>", "from -1000 to 1000, higher runs first (default: 0)", wholeNumber("--priority"))
    .option("--in <duration>", "not before this long from now: 30s, 5m")
    .option("--attempts <n>", "how often it may be tried in total (default: 4)", wholeNumber("--attempts"))
    .option("--timeout <duration>", "how long one run may take")
    .option("--config <file>", "the config that declares the job (default: daybook.config.ts, if it is here)")
    .addHelpText("after", example)
    .action(async (id: string, name: string, { params: given, config, ...options }: Options, command: Command) => {
      const params = await readParams(given);
      const { pickJob, withConfig } = await import("../load-definitions.ts");
      await withConfig(config, (use) => {
        if (config !== undefined) pickJob(use, name, config);
        return withBook(command, { ...changing, use }, async (book) => {
          const made = await book.groups.add(id, name, params, options);
          return { json: made, text: () => `${made.id} is added to ${id}: ${made.status}` };
        });
      });
    });
}
