// daybook run: a worker from a user's file.
import type { Command } from "commander";
import { durationMs } from "../core/duration.ts";
import { checkName } from "../core/name.ts";
import { whole } from "../verbs/field.ts";
import { listenForSignals } from "./stop.ts";

const example = `
The file exports its definitions, one by one or as a list; TypeScript runs as it is. What the config
of the project declares (docs/jobs.md) is run as well, and without a file that alone. A book that is
not there is made, and one that is not up to date is migrated. Jobs of all tenants are run.

Of a folder every file is loaded, and one that cannot be is said and left out (docs/apps.md). With
--watch an app whose file is edited is stopped and set up again, for use while you write it.

On a terminal one line shows what happens and failures stay above it. Elsewhere each job that ended
and each run of a live listener is a line, with --json an object per line. SIGINT or SIGTERM lets what runs end (within --grace), then
aborts its signals, and ends the program with 0. With 23 it ends when a handler ignored its signal; its
job runs again elsewhere. A second signal ends it at once.

Example:
  $ daybook run --book shop.db jobs.ts --concurrency 20 --queues mail,default
  $ daybook run --book home.db ./apps --watch`;

export type Options = {
  readonly concurrency?: number;
  readonly queues?: readonly string[];
  readonly grace?: number;
  readonly config?: string;
  readonly watch?: boolean;
  readonly strict?: boolean;
};

export function run(program: Command): void {
  program
    .command("run")
    .description("run the jobs and apps that files define, until it is told to stop")
    .argument("[module]", "the file that exports the definitions, or a folder of apps: TypeScript or JavaScript")
    .option("--config <file>", "the config of the project (default: daybook.config.ts, if it is here)")
    .option("--concurrency <n>", "how many runs at the same time (default: 10)", toConcurrency)
    .option("--grace <duration>", "how long what runs may go on after a signal: 5s, 1m (default: 8s)", toGrace)
    .option("--queues <list>", "only these queues, separated by commas (default: all)", toQueues)
    .option("--watch", "of a folder: stop and set up again the apps whose files are edited")
    .option("--strict", "an error that escapes from a handler of an app ends the program, not its run alone")
    .addHelpText("after", example)
    .action(async (module: string | undefined, options: Options, command: Command) => {
      const stop = listenForSignals();
      try {
        // Imported when it runs: help needs none of it.
        const { work } = await import("./work.ts");
        await work(module, options, command, stop);
      } finally {
        stop.release();
      }
    });
}

// Checked before a book is opened, which may make one.
function toConcurrency(text: string): number {
  const field = whole("how many runs at the same time", 1, 10_000);
  const value = field.fromText(text, "--concurrency");
  field.check(value, "--concurrency");
  return Number(value);
}

function toGrace(text: string): number {
  return durationMs(text, "--grace");
}

function toQueues(text: string): string[] {
  return text.split(",").map((each) => checkName(each.trim(), "queue"));
}
