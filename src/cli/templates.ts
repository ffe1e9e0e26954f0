// daybook templates: jobs with default params and settings, kept under a name.
import { Option, type Command } from "commander";
import type { TemplatePage, TemplateRecord } from "../jobs/template/template.ts";
import type { Answer } from "./answer.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { readParams } from "./read-params.ts";
import { plainCell, showTable, timeCell } from "./show.ts";
import { addSettingOptions, templateJson, templateWords, toChanges, toSettings } from "./template-words.ts";
import { changing, looking, withBook } from "./with-book.ts";

const groupExample = `
A job is made from what a template says at that moment; neither an edit nor an archive changes one
that exists.

Example:
  $ daybook templates create --book shop.db reminder --job send-receipt --params '{"copies": 2}'
  $ daybook jobs enqueue --book shop.db --template reminder --params '{"orderId": "o-18"}'`;

const listExample = `
Example:
  $ daybook templates list --book shop.db --active`;

const showExample = `
What is not shown is left to the definition of the job.

Example:
  $ daybook templates show --book shop.db reminder`;

const createExample = `
What is not given is left to the definition of the job. A name that is taken, also by an archived
template, is a conflict (exit code 5).

Example:
  $ daybook templates create --book shop.db reminder --job send-receipt --params '{"copies": 2}' --attempts 8`;

const editExample = `
What is not given stays, "none" gives a setting back to the definition, and --params replaces all the
defaults there were.

Example:
  $ daybook templates edit --book shop.db reminder --params '{"copies": 1}' --priority none`;

const archiveExample = `
Example:
  $ daybook templates archive --book shop.db reminder`;

const restoreExample = `
Example:
  $ daybook templates restore --book shop.db reminder`;

type Given = Parameters<typeof toSettings>[0] & { readonly job?: string; readonly params?: string };

export function templates(program: Command): void {
  const group = program
    .command("templates")
    .description("list, show, create, edit, archive and restore templates, which jobs are made from")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  addList(group);
  group
    .command("show")
    .description("show one template: its job, its default params and its settings")
    .argument("<name>", "the name of the template")
    .addHelpText("after", showExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, looking, async (book) => toAnswer(await book.templates.get(name))),
    );
  const create = group
    .command("create")
    .description("keep a job with default params and settings under a name")
    .argument("<name>", "the name of the template")
    .requiredOption("--job <name>", "the name of the job that is made from it");
  addSettingOptions(create)
    .addHelpText("after", createExample)
    .action(async (name: string, { job, params, ...settings }: Given & { job: string }) => {
      const options = { job, ...(await toParams(params)), ...toSettings(settings) };
      await withBook(create, changing, async (book) => toAnswer(await book.templates.create(name, options)));
    });
  const edit = group
    .command("edit")
    .description("change a template; jobs that exist stay as they are")
    .argument("<name>", "the name of the template")
    .option("--job <name>", "the name of the job that is made from it");
  addSettingOptions(edit, ', or "none"')
    .addHelpText("after", editExample)
    .action(async (name: string, { job, params, ...settings }: Given) => {
      const changes = { ...(job === undefined ? {} : { job }), ...(await toParams(params)), ...toChanges(settings) };
      await withBook(edit, changing, async (book) => toAnswer(await book.templates.edit(name, changes)));
    });
  group
    .command("archive")
    .description("make no more jobs from a template; those that exist stay")
    .argument("<name>", "the name of the template")
    .addHelpText("after", archiveExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => toAnswer(await book.templates.archive(name))),
    );
  group
    .command("restore")
    .description("let jobs be made from an archived template again")
    .argument("<name>", "the name of the template")
    .addHelpText("after", restoreExample)
    .action((name: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => toAnswer(await book.templates.restore(name))),
    );
}

function addList(group: Command): void {
  const list = group
    .command("list")
    .description("list templates, newest first")
    .addOption(new Option("--archived", "only those that are archived").conflicts("active"))
    .option("--active", "only those that are not archived");
  addPageOptions(list)
    .addHelpText("after", listExample)
    .action(({ archived, active, ...page }: PageOptions & { archived?: true; active?: true }) => {
      const which = archived === undefined && active === undefined ? {} : { archived: archived === true };
      return withBook(list, looking, async (book) =>
        listAnswer(list, await book.templates.list({ ...page, ...which })),
      );
    });
}

async function toParams(given: string | undefined): Promise<{ params?: object }> {
  // What no template can have as defaults is refused by the library.
  return given === undefined ? {} : { params: (await readParams(given)) as object };
}

function toAnswer(template: TemplateRecord): Answer {
  return { json: templateJson(template), text: () => templateWords(template) };
}

function listAnswer(command: Command, { items, next }: TemplatePage): Answer {
  return {
    json: { items: items.map(templateJson), next },
    text: async () => {
      if (items.length === 0) return "There are no such templates, or none before that cursor.";
      return [await table(items), ...nextPage(command, next)].join("\n");
    },
  };
}

function table(items: readonly TemplateRecord[]): Promise<string> {
  return showTable(
    ["name", "job", "queue", "updated", "archived", "params"],
    items.map((each) => [
      plainCell(each.name, 40),
      plainCell(each.job, 32),
      each.queue === null ? "" : plainCell(each.queue, 20),
      timeCell(each.updatedAt),
      timeCell(each.archivedAt),
      plainCell(JSON.stringify(each.params), 40),
    ]),
  );
}
