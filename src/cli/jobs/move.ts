// daybook jobs move: another place in the line, for a job that has not started.
import type { Command } from "commander";
import { invalid } from "../../core/error.ts";
import type { MoveTo } from "../../jobs/line/edit.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
A job moves within its queue and priority; "daybook jobs prioritise" gives it another priority. One
that runs or has ended is a conflict (exit code 5).

Example:
  $ daybook jobs move --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e --first
  $ daybook jobs move --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e \\
      --before 019a3c5e-7a04-7000-8000-91d2c40ee3a7`;

type Options = {
  readonly before?: string;
  readonly after?: string;
  readonly first?: true;
  readonly last?: true;
};

export function moveJob(jobs: Command): void {
  jobs
    .command("move")
    .description("give a job that has not started another place in its queue")
    .argument("<id>", "the id of the job")
    .option("--before <id>", "right before this job")
    .option("--after <id>", "right after this job")
    .option("--first", "before all others of its priority")
    .option("--last", "behind all others of its priority")
    .addHelpText("after", example)
    .action((id: string, options: Options, command: Command) => {
      const to = toPlace(options);
      return withBook(command, changing, async (book) => {
        const moved = await book.jobs.move(id, to);
        return { json: moved, text: () => `${id} has position ${moved.position} in priority ${moved.priority}` };
      });
    });
}

function toPlace({ before, after, first, last }: Options): MoveTo {
  const given: readonly MoveTo[] = [
    ...(before === undefined ? [] : [{ before }]),
    ...(after === undefined ? [] : [{ after }]),
    ...(first === undefined ? [] : ["first" as const]),
    ...(last === undefined ? [] : ["last" as const]),
  ];
  const [to] = given;
  if (to !== undefined && given.length === 1) return to;
  throw invalid(
    `${given.length === 0 ? "no place" : "more than one place"} given: --before, --after, --first or --last`,
  );
}
