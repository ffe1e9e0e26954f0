// daybook held, release, mark-as-copy: what a copy of a book does not do by itself.
import type { Command } from "commander";
import type { Held, Released } from "../book/copy.ts";
import { isoTime } from "../core/time.ts";
import type { HeldFilter } from "../jobs/wait/hold.ts";
import type { Answer } from "./answer.ts";
import { showTable, timeCell } from "./show.ts";
import { changing, looking, withBook } from "./with-book.ts";

const aboutHeld = `
A backup that is opened as a book, and a book that was marked as a copy, run and fire nothing that was
open when the copy was made: the original may do it, or has done it. This lists what is held, of all
tenants unless --tenant is given.

Example:
  $ daybook held --book restored.db`;

const aboutRelease = `
Without options all that is held goes its way: jobs whose time has come run, schedules fire from now on
and do not catch up. Options name a part of it. With --drop the jobs are cancelled instead: it says
which, and does it with --apply. Of all tenants, unless --tenant is given.

Example:
  $ daybook release --book restored.db --kind call --older-than 1h --drop --apply
  $ daybook release --book restored.db`;

const aboutMark = `
What "daybook backup" writes is marked already. A file that was copied by other means, or a database
that was restored by pg_restore, cannot know that it is a copy: mark it before any program opens it, or
it does again what the original does.

Example:
  $ cp shop.db test.db && daybook mark-as-copy --book test.db`;

export function heldCommands(program: Command): void {
  withFilter(program.command("held"))
    .description("list what a copy of a book holds until it is released")
    .addHelpText("after", aboutHeld)
    .action((filter: HeldFilter, command: Command) =>
      withBook(command, looking, async (book) => heldAnswer(await book.held(inTenant(filter, command)))),
    );
  withFilter(program.command("release"))
    .description("let go what a copy of a book holds, or drop it")
    .option("--drop", "cancel the jobs instead; needs --apply")
    .option("--dry-run", "say what would be released, and do nothing")
    .option("--apply", "with --drop: do it, and do not only say it")
    .addHelpText("after", aboutRelease)
    .action(({ apply, ...options }: Options, command: Command) => {
      const dryRun = options.dryRun === true || (options.drop === true && apply !== true);
      return withBook(command, changing, async (book) =>
        releasedAnswer(await book.release({ ...inTenant(options, command), dryRun })),
      );
    });
  program
    .command("mark-as-copy")
    .description("tell a book that was copied by other means that it is a copy")
    .addHelpText("after", aboutMark)
    .action((_options: unknown, command: Command) =>
      withBook(command, changing, async (book) => heldAnswer(await book.markAsCopy())),
    );
}

type Options = HeldFilter & { readonly drop?: true; readonly dryRun?: true; readonly apply?: true };

function withFilter(command: Command): Command {
  return command
    .option("--kind <kind>", "only jobs of this kind: job, schedule, delivery, catch_up, call, direct")
    .option("--older-than <duration>", "only jobs that were made at least this long ago: 1h, 2d")
    .option("--newer-than <duration>", "only jobs that were made within this time");
}

/** A copy is one whole, so only a tenant that was named narrows it. */
function inTenant<Filter extends HeldFilter>(filter: Filter, command: Command): Filter {
  const isGiven = command.getOptionValueSourceWithGlobals("tenant") !== "default";
  return isGiven ? { ...filter, tenant: command.optsWithGlobals<{ tenant: string }>().tenant } : filter;
}

function heldAnswer(held: Held): Answer {
  const { jobs, schedules } = held;
  const rows = [
    ...jobs.map(({ tenant, kind, count, oldestAt, newestAt }) => [
      ...[tenant, kind, String(count), timeCell(oldestAt), timeCell(newestAt)],
    ]),
    ...schedules.map(({ tenant, count }) => [tenant, "(schedules)", String(count), "", ""]),
  ];
  return {
    json: {
      jobs: jobs.map((each) => ({ ...each, oldestAt: isoTime(each.oldestAt), newestAt: isoTime(each.newestAt) })),
      schedules,
    },
    text: () =>
      rows.length === 0 ? "nothing is held" : showTable(["tenant", "kind", "held", "oldest made", "newest made"], rows),
  };
}

function releasedAnswer(released: Released): Answer {
  const { dryRun, dropped, jobs, behind, schedules } = released;
  const verb = dropped ? "dropped" : "released";
  const all = behind === 0 ? `${jobs} jobs` : `${jobs} jobs (${behind} of them behind another)`;
  const what = dropped ? all : `${all} and ${schedules} schedules`;
  const hint = dropped ? "; drop them with --apply" : "";
  return { json: released, text: () => (dryRun ? `${what} would be ${verb}${hint}` : `${what} were ${verb}`) };
}
