// daybook jobs enqueue: a job by its name, or from a template, from a shell.
import { Option, type Command } from "commander";
import type { Book } from "../../book.ts";
import { invalid } from "../../core/error.ts";
import type { EnqueueOptions } from "../../jobs/prepare.ts";
import type { Answer } from "../answer.ts";
import { readParams } from "../read-params.ts";
import { plainCell } from "../show.ts";
import { wholeNumber } from "../whole-number.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
A job that the config of the project does not declare gets the settings that the program which
runs it wrote to the book (queue, priority, attempts, timeout, limits), and its params are checked
by the schema that is there. A name that no program has hosted yet gets the defaults, and the answer
says so. With --config it must be declared there. From a template, the params are laid over its
defaults, and its settings hold where no option is given.

Example:
  $ daybook jobs enqueue --book shop.db send-receipt --params '{"orderId": "o-17"}' --key o-17
  $ daybook jobs enqueue --book shop.db sum-orders --params @month.json --at 2026-12-01T06:00:00Z
  $ echo '{"to": "ada"}' | daybook jobs enqueue --book shop.db greet --params - --in 5m --tag test
  $ daybook jobs enqueue --book shop.db --template reminder --params '{"orderId": "o-18"}'`;

type Options = Pick<EnqueueOptions, "queue" | "priority" | "key" | "onConflict" | "idempotencyKey" | "attempts"> & {
  readonly template?: string;
  readonly config?: string;
  readonly params?: string;
  readonly at?: string;
  readonly in?: string;
  readonly keyScope?: string;
  readonly tag?: readonly string[];
  readonly timeout?: string;
};

export function enqueueJob(jobs: Command): void {
  jobs
    .command("enqueue")
    .description("make a job, by the name of its definition or from a template")
    .argument("[name]", "the name of the job, unless --template is given")
    .option("--template <name>", "make it from this template")
    .option("--params <json>", 'the params as JSON, "@file" to read them from a file, "-" from standard input')
    .option("--queue <queue>", "the queue (default: that of its definition)")
    .option(
      "--priority <n>",
      "from -1000 to 1000, higher runs first (default: that of its definition)",
      wholeNumber("--priority"),
    )
    .option("--at <time>", "not before this time, ISO 8601 with a zone")
    .option("--in <duration>", "not before this long from now: 30s, 5m, 1h30m, 7d")
    .option("--key <key>", "at most one job of this name and key at a time")
    .option("--key-scope <scope>", 'how long the key is taken: "queued", "done" or a duration (default: "done")')
    .addOption(
      new Option("--on-conflict <policy>", "when the key is taken (default: keep)").choices([
        "keep",
        "replace",
        "error",
      ]),
    )
    .option("--idempotency-key <key>", "the same key and params again give the same job")
    .option("--tag <tag>", "a tag; may be given several times", collect)
    .option(
      "--attempts <n>",
      "how often it may be tried in total (default: as its definition says)",
      wholeNumber("--attempts"),
    )
    .option("--timeout <duration>", "how long one run may take")
    .option("--config <file>", "the config that declares the job (default: daybook.config.ts, if it is here)")
    .addHelpText("after", example)
    .action(async (name: string | undefined, options: Options, command: Command) => {
      const make = await toMaker(name, options);
      const { pickJob, withConfig } = await import("../load-definitions.ts");
      await withConfig(options.config, (use) => {
        if (options.config !== undefined && name !== undefined) pickJob(use, name, options.config);
        return withBook(command, { ...changing, use }, (book) => enqueue(book, make, options));
      });
    });
}

type Maker = (book: Book) => ReturnType<Book["jobs"]["enqueueFrom"]>;

async function toMaker(name: string | undefined, given: Options): Promise<Maker> {
  const { template, params } = given;
  const options = toEnqueueOptions(given);
  if (template !== undefined) {
    if (name !== undefined) throw invalid("give a name or --template, not both: the template says which job it is");
    // Not given is not the same as {}: the defaults of a template may be something else than an object.
    const overrides = params === undefined ? undefined : await readParams(params);
    return (book) => book.jobs.enqueueFrom(template, overrides, options);
  }
  if (name === undefined) throw invalid("give the name of the job, or --template <name>");
  const read = await readParams(params);
  return (book) => book.jobs.enqueue(name, read, options);
}

function toEnqueueOptions(given: Options): EnqueueOptions {
  const { params: _params, template: _template, config: _config, keyScope, tag, ...rest } = given;
  return {
    ...rest,
    ...(keyScope === undefined ? {} : { keyScope: toScope(keyScope) }),
    ...(tag === undefined ? {} : { tags: tag }),
  };
}

function toScope(scope: string): NonNullable<EnqueueOptions["keyScope"]> {
  return scope === "queued" || scope === "done" ? scope : { window: scope };
}

function collect(tag: string, before: readonly string[] = []): string[] {
  return [...before, tag];
}

async function enqueue(book: Book, make: Maker, { onConflict }: Options): Promise<Answer> {
  const made = await make(book);
  return {
    json: made,
    async text() {
      const kept =
        onConflict === "replace" ? "has the key already and was replaced" : "has the key already, so none was made";
      const what = made.created ? "is enqueued" : kept;
      const { reason, because } = await book.jobs.explain(made.id);
      // A misspelt name waits for ever, so that nobody runs it is said at once.
      const hint = reason === "host" ? because.slice(0, 1) : [];
      const said = made.warning === undefined ? hint : [made.warning];
      return [`${made.id} ${what}: ${made.status}`, ...said.map((each) => plainCell(each, 500))].join("\n");
    },
  };
}
