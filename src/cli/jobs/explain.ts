// daybook jobs explain: why a job has not run, or what became of it.
import type { Command } from "commander";
import { plainCell } from "../show.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
After the status stands the obstacle: time, key, host, paused, limit, rate, alone or place. Then come
sentences, the most important first; for a job that runs or has ended they say where and how.

Example:
  $ daybook jobs explain --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

export function explainJob(jobs: Command): void {
  jobs
    .command("explain")
    .description("say why a job has not run, or what became of it")
    .argument("<id>", "the id of the job")
    .addHelpText("after", example)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => {
        const explanation = await book.jobs.explain(id);
        const { status, reason, because } = explanation;
        return {
          json: explanation,
          text: () =>
            [reason === status ? status : `${status}: ${reason}`, ...because.map((each) => plainCell(each, 500))].join(
              "\n",
            ),
        };
      }),
    );
}
