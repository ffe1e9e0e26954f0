// daybook jobs run-now: one job, here, before everything that stands in line, and its result.
import type { Command } from "commander";
import type { RunNowOptions } from "../../jobs/direct/run-now.ts";
import { readParams } from "../read-params.ts";
import { pureJson } from "../show.ts";
import { withBook, type Access } from "../with-book.ts";

const example = `
Reserves the queue, waits for what runs in it, runs the job in this process and prints its result as
JSON; then the queue goes on in its order. While somebody else holds the queue it waits, or with
--reject it is a conflict (exit code 5). A job that fails is a conflict, too, and is not tried again;
one that has not ended in time is cancelled (exit code 10), and so is one that a signal ends.

Example:
  $ daybook jobs run-now --book shop.db sum-orders --from jobs.ts --params '{"month": 11}' --timeout 1m`;

type Options = Pick<RunNowOptions, "queue" | "timeout"> & {
  readonly from?: string;
  readonly config?: string;
  readonly params?: string;
  readonly reject?: true;
};

export function runJobNow(jobs: Command): void {
  jobs
    .command("run-now")
    .description("run a job here and now, before those that stand in line, and print its result")
    .argument("<name>", "the name of the job")
    .option("--from <module>", "the file that exports its definition, TypeScript or JavaScript")
    .option("--config <file>", "the config that declares it (default: daybook.config.ts, if it is here)")
    .option("--params <json>", 'the params as JSON, "@file" to read them from a file, "-" from standard input')
    .option("--queue <queue>", "the queue (default: that of the definition)")
    .option("--reject", "do not wait while somebody else holds the queue")
    .option("--timeout <duration>", "how long to wait for the turn and the result (default: without limit)")
    .addHelpText("after", example)
    .action(async (name: string, { from, config, params: given, reject, ...rest }: Options, command: Command) => {
      const params = await readParams(given);
      const options: RunNowOptions = { ...rest, onBusy: reject === true ? "reject" : "wait" };
      const { pickJob, withDefinitions } = await import("../load-definitions.ts");
      await withDefinitions({ module: from, config }, (definitions) => {
        const access: Access = { ...direct, use: [pickJob(definitions, name, from ?? config ?? "daybook.config.ts")] };
        return withBook(command, access, async (book) => {
          const result = (await book.jobs.runNow(name, params, options)) ?? null;
          return { json: { name, result }, text: () => pureJson(result) };
        });
      });
    });
}

/** It runs something, so it is a session. Who ends it by a signal does not want to wait for the job. */
const direct: Access = { attach: true, migrate: false, worker: { grace: 0 } };
