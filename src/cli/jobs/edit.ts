// daybook jobs edit: other params, for a job that has not started.
import type { Command } from "commander";
import type { AnyJob } from "../../jobs/define.ts";
import { readParams } from "../read-params.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
The params are replaced as a whole; the job keeps its place. With --from, or when the config of the
project declares the job, they are checked by the definition, and limits that depend on them follow;
else they are checked when the job runs. One that runs or has ended, and a retry, is a conflict (exit
code 5).

Example:
  $ daybook jobs edit --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e --params '{"orderId": "o-18"}'
  $ daybook jobs edit --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e --params @order.json --from jobs.ts`;

type Options = { readonly params: string; readonly from?: string; readonly config?: string };

export function editJob(jobs: Command): void {
  jobs
    .command("edit")
    .description("replace the params of a job that has not started")
    .argument("<id>", "the id of the job")
    .requiredOption("--params <json>", 'the params as JSON, "@file" to read them from a file, "-" from standard input')
    .option("--from <module>", "the file that exports the definition, TypeScript or JavaScript")
    .option("--config <file>", "the config that declares it (default: daybook.config.ts, if it is here)")
    .addHelpText("after", example)
    .action(async (id: string, { params: given, from, config }: Options, command: Command) => {
      const params = await readParams(given);
      const edit = (use: readonly AnyJob[]): Promise<void> =>
        withBook(command, { ...changing, use }, async (book) => {
          const edited = await book.jobs.edit(id, params);
          return { json: edited, text: () => `${id} has new params: ${edited.status}` };
        });
      const { withConfig, withDefinitions } = await import("../load-definitions.ts");
      return from === undefined ? withConfig(config, edit) : withDefinitions({ module: from, config }, edit);
    });
}
