// daybook groups create: a group and its jobs, from a shell, in one transaction.
import { Option, type Command } from "commander";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import type { GroupOptions } from "../../jobs/group/groups.ts";
import type { EnqueueOptions } from "../../jobs/define.ts";
import { readParams } from "../read-params.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
The jobs are a JSON list in their order, each with its name as "job", its "params", and the options of
an enqueue (queue, priority, attempts, timeout, in, tags …). The list may be "@file", or "-" for
standard input. What the config of the project declares applies, as for "jobs enqueue".

Example:
  $ daybook groups create --book shop.db --mode sequential --on-failure skip --name nightly \\
      --jobs '[{"job": "sum-orders", "params": {"month": 11}}, {"job": "send-report", "attempts": 1}]'`;

type Options = Pick<GroupOptions, "name" | "mode" | "onFailure"> & { readonly jobs: string; readonly config?: string };

export function createGroup(groups: Command): void {
  groups
    .command("create")
    .description("make a group and its jobs, in one transaction")
    .addOption(
      new Option("--mode <mode>", "one after another, or side by side")
        .choices(["sequential", "parallel"])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option("--on-failure <policy>", "when a job fails for good (default: stop)").choices([
        "stop",
        "skip",
        "continue",
      ]),
    )
    .option("--name <name>", "for lists; need not be unique")
    .requiredOption("--jobs <json>", 'the jobs: [{ "job": name, "params": … }, …], "@file" or "-"')
    .option("--config <file>", "the config that declares the jobs (default: daybook.config.ts, if it is here)")
    .addHelpText("after", example)
    .action(async ({ jobs, config, ...options }: Options, command: Command) => {
      const members = toMembers(await readParams(jobs));
      const { pickJob, withConfig } = await import("../load-definitions.ts");
      await withConfig(config, (use) => {
        if (config !== undefined) for (const [name] of members) pickJob(use, name, config);
        return withBook(command, { ...changing, use }, async (book) => {
          const made = await book.groups.create(options, (group) => {
            for (const [name, params, more] of members) group.add(name, params, more);
          });
          const text = [`${made.id} is open`, ...made.jobs.map(({ id, name, status }) => `${id} ${name}: ${status}`)];
          return { json: made, text: () => text.join("\n") };
        });
      });
    });
}

type Member = [name: string, params: unknown, options: EnqueueOptions];

function toMembers(given: unknown): Member[] {
  if (!Array.isArray(given)) throw invalid(`--jobs is ${quote(given)}: give a list of { "job": name, "params": … }`);
  return given.map((each: unknown, index) => {
    if (typeof each !== "object" || each === null || !("job" in each) || typeof each.job !== "string") {
      throw invalid(`--jobs[${index}] is ${quote(each)}: give { "job": the name of the job, "params": … }`);
    }
    const { job, params, ...options } = each as { job: string; params?: unknown } & EnqueueOptions;
    return [job, params ?? {}, options];
  });
}
