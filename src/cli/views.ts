// daybook views: the tables of the designs that Daybook comes from, as read-only views under their names.
import type { Command } from "commander";
import type { Answer } from "./answer.ts";
import { changing, withBook, type Run } from "./with-book.ts";

const groupExample = `
A book has none of them unless somebody asked: their names are common ones, such as jobs and events.
docs/origins.md lists them, with statements that read them.

Example:
  $ daybook views create --book shop.db`;

const createExample = `
All are made, or none: a name that a table or view of yours has is refused (conflict, exit code 5).
A second time it does nothing; after an update of daybook it brings them up to date. Programs do the
same with \`open(url, { views: true })\`.

Example:
  $ daybook views create --book shop.db
  $ sqlite3 shop.db 'select job_type, status from jobs'`;

const dropExample = `
Tables and views of your own stay, whatever their names.

Example:
  $ daybook views drop --book shop.db`;

export function views(program: Command): void {
  const group = program
    .command("views")
    .description("make or drop the read-only views under the names of other designs")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  group
    .command("create")
    .description("make all of them, or bring them up to date")
    .addHelpText("after", createExample)
    .action((_options: unknown, command: Command) => withBook(command, changing, create));
  group
    .command("drop")
    .description("drop those that are there")
    .addHelpText("after", dropExample)
    .action((_options: unknown, command: Command) => withBook(command, changing, drop));
}

const create: Run = async (book) => {
  const { roomsOf, views: all, createViews } = await load();
  const made = await createViews(roomsOf(book).store, all);
  return toAnswer({ created: made }, made.length === 0 ? "The views are there and up to date." : listed("made", made));
};

const drop: Run = async (book) => {
  const { roomsOf, views: all, dropViews } = await load();
  const gone = await dropViews(roomsOf(book).store, all);
  return toAnswer({ dropped: gone }, gone.length === 0 ? "There are no such views." : listed("dropped", gone));
};

async function load() {
  const [rooms, list, verbs] = await Promise.all([
    import("../open/rooms.ts"),
    import("../open/views.ts"),
    import("../storage/view.ts"),
  ]);
  return { ...rooms, ...list, ...verbs };
}

function toAnswer(json: Record<string, readonly string[]>, words: string): Answer {
  return { json, text: () => words };
}

function listed(what: string, names: readonly string[]): string {
  return [`${what}:`, ...names.map((name) => `  ${name}`)].join("\n");
}
