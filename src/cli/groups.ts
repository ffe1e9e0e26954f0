// daybook groups: jobs with one fate.
import { Option, type Command } from "commander";
import type { Book } from "../book/book.ts";
import type { Duration } from "../core/duration.ts";
import type { GroupFilter, GroupPage } from "../jobs/group/groups.ts";
import type { Answer } from "./answer.ts";
import { addToGroup } from "./groups/add.ts";
import { createGroup } from "./groups/create.ts";
import { groupJson, groupTable, groupWords } from "./group-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { changing, looking, withBook } from "./with-book.ts";

/** Above the exit codes of errors: the wait is over, and the group did not complete. */
const exitNotCompleted = 22;

const groupExample = `
A group is open until the last of its jobs has ended, and then
completed, failed, partial or cancelled.

Example:
  $ daybook groups list --book shop.db --status open
  $ daybook groups show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

const listExample = `
Example:
  $ daybook groups list --book shop.db --status failed`;

const showExample = `
Each slot shows the last job of its chain of retries.

Example:
  $ daybook groups show --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

const cancelExample = `
What has not begun never runs, and what runs is asked to end; the group ends with the last of them. A
group that has ended is a conflict (exit code 5).

Example:
  $ daybook groups cancel --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;

const waitExample = `
Exits with 0 when the group has completed and with ${exitNotCompleted} when it ended otherwise. One that has not ended
in time is a timeout (exit code 10) and goes on.

Example:
  $ daybook groups wait --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e --timeout 10m && echo done`;

const statuses: readonly NonNullable<GroupFilter["status"]>[] = ["open", "completed", "failed", "partial", "cancelled"];

export function groups(program: Command): void {
  const group = program
    .command("groups")
    .description("make, list, show, cancel and wait for groups: jobs that belong together")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  createGroup(group);
  addToGroup(group);
  const list = group
    .command("list")
    .description("list groups, newest first")
    .addOption(new Option("--status <status>", "only groups in this state").choices(statuses));
  addPageOptions(list)
    .addHelpText("after", listExample)
    .action((filter: PageOptions & Pick<GroupFilter, "status">) =>
      withBook(list, looking, async (book) => listAnswer(list, await book.groups.list(filter))),
    );
  group
    .command("show")
    .description("show one group: its progress and its jobs")
    .argument("<id>", "the id of the group")
    .addHelpText("after", showExample)
    .action((id: string, _options: unknown, command: Command) => withBook(command, looking, (book) => show(book, id)));
  group
    .command("cancel")
    .description("cancel what is left of a group")
    .argument("<id>", "the id of the group")
    .addHelpText("after", cancelExample)
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const done = await book.groups.cancel(id);
        const text = done.status === "cancelled" ? `${id} is cancelled` : `${id} ends when what runs of it has ended`;
        return { json: done, text: () => text };
      }),
    );
  group
    .command("wait")
    .description("wait until a group has ended, and show it")
    .argument("<id>", "the id of the group")
    .option("--timeout <duration>", "how long, such as 30s (default: without limit)")
    .addHelpText("after", waitExample)
    .action((id: string, options: { timeout?: Duration }, command: Command) =>
      withBook(command, looking, async (book) => {
        const { status } = await book.groups.done(id, options);
        return { ...(await show(book, id)), ...(status === "completed" ? {} : { exit: exitNotCompleted }) };
      }),
    );
}

async function show(book: Book, id: string): Promise<Answer> {
  const found = await book.groups.get(id);
  const members = await book.groups.members(id);
  return { json: { ...groupJson(found), members }, text: () => groupWords(found, members) };
}

function listAnswer(command: Command, { items, next }: GroupPage): Answer {
  return {
    json: { items: items.map(groupJson), next },
    text: async () => {
      if (items.length === 0) return "There are no such groups, or none before that cursor.";
      return [await groupTable(items), ...nextPage(command, next)].join("\n");
    },
  };
}
