// backup, held, release and mark-as-copy: copies of a book, and what a copy does not do by itself.
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Held, Released } from "../../index.ts";
import { systemClock } from "../../core/clock.ts";
import { duration, flag, maybe, text, word } from "../field.ts";
import { rehearsing } from "../shared-fields.ts";
import { bytes, count, table, when, type Part } from "../shown.ts";
import { admin, read, type Call } from "../verb.ts";

const pathMax = 4096;
const kinds = ["job", "schedule", "delivery", "catch_up", "call", "direct"] as const;

const which = {
  kind: maybe(word("only jobs of this kind", kinds)),
  olderThan: maybe(duration("only jobs that were made at least this long ago, such as 1h")),
  newerThan: maybe(duration("only jobs that were made within this time, such as 2d")),
};

export const copy = {
  backup: admin({
    words: "backup <path>",
    local: true,
    needs: "read",
    of: "book",
    about: "copy the book to a file while it is in use, and check the copy",
    more: `The copy is one consistent moment of the book. It is checked before it gets its name, so a file of
that name is always whole. A book on PostgreSQL is backed up by pg_dump or pg_basebackup.`,
    input: {
      path: text("the file to write; its folder must exist", "path", pathMax),
      overwrite: maybe(flag("replace a file of that name")),
    },
    examples: ["backup backups/shop-monday.db"],
    run(book, { path, overwrite = false }, { signal }) {
      discardWhenAborted(path, signal);
      return book.backup(path, { overwrite });
    },
    show: ({ path, bytes: size, tables }) => `${path}: ${bytes(size)}, ${count(tables, "table")}, checked`,
  }),

  held: read({
    words: "held",
    of: "book",
    about: "list what a copy of a book holds until it is released",
    more: `A backup that is opened as a book, and a book that was marked as a copy, run and fire nothing that was
open when the copy was made: the original may do it, or has done it. This lists what is held, of all
tenants unless --tenant is given.`,
    input: which,
    examples: ["held", "held --kind call --tenant acme"],
    run: (book, filter, call) => book.held({ ...filter, ...tenantOf(call) }),
    show: heldTable,
  }),

  release: admin({
    words: "release",
    of: "book",
    destroys: "drop",
    about: "let go what a copy of a book holds, or drop it",
    more: `Without options all that is held goes its way: jobs whose time has come run, schedules fire from now on
and do not catch up. Options name a part of it. With --drop the jobs are cancelled instead: it says
how many, and does it with --apply. Of all tenants, unless --tenant is given.`,
    input: {
      ...which,
      drop: maybe(flag("cancel the jobs instead; needs --apply")),
      ...rehearsing,
      apply: maybe(flag("with --drop: do it, and do not only say it")),
    },
    examples: ["release --kind call --older-than 1h --drop --apply", "release"],
    run(book, { drop = false, dryRun = false, apply = false, ...filter }, call) {
      return book.release({ ...filter, ...tenantOf(call), drop, dryRun: dryRun || (drop && !apply) });
    },
    show: releasedLine,
  }),

  // Not for a server, because it must happen before any program opens the copy.
  markAsCopy: admin({
    words: "mark-as-copy",
    local: true,
    of: "book",
    about: "tell a book that was copied by other means that it is a copy",
    more: `What "backup" writes is marked already. A file that was copied by other means, or a database that was
restored by pg_restore, cannot know that it is a copy: mark it before any program opens it, or it does
again what the original does.`,
    run: (book) => book.markAsCopy(),
    show: heldTable,
  }),
};

/** A copy is one whole, so only a tenant that was named narrows it. */
function tenantOf({ tenant }: Call): { readonly tenant?: string } {
  return tenant === null ? {} : { tenant };
}

// The thread that writes the copy cannot be called back, so what it has written is taken away from under it; the second time
// because it may have been about to begin its journal.
function discardWhenAborted(path: string, signal: AbortSignal): void {
  const before = unfinishedFiles(path);
  const discard = (): void => {
    for (const file of unfinishedFiles(path)) if (!before.includes(file)) rmSync(file, { force: true });
  };
  signal.addEventListener("abort", () => {
    discard();
    systemClock.after(100, discard);
  });
}

// storage/backup.ts writes to `<name>.<id>.partial` beside the target until the copy has been checked.
function unfinishedFiles(path: string): string[] {
  const target = resolve(path);
  const folder = dirname(target);
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith(`${basename(target)}.`) && /\.partial(-journal)?$/.test(name))
      .map((name) => join(folder, name));
  } catch {
    return []; // A folder that is not there is the backup's own to complain about.
  }
}

function heldTable({ jobs, schedules }: Held): Part {
  const ofSchedules = schedules.map((each) => ({ ...each, kind: "(schedules)", oldestAt: null, newestAt: null }));
  return table(
    [...jobs, ...ofSchedules],
    {
      tenant: ({ tenant }) => tenant,
      kind: ({ kind }) => kind,
      held: (each) => each.count,
      "oldest made": ({ oldestAt }) => when(oldestAt),
      "newest made": ({ newestAt }) => when(newestAt),
    },
    { none: "Nothing is held." },
  );
}

function releasedLine({ dryRun, dropped, jobs, behind, schedules }: Released): string {
  const all = behind === 0 ? count(jobs, "job") : `${count(jobs, "job")} (${behind} of them behind another)`;
  const what = dropped ? all : `${all} and ${count(schedules, "schedule")}`;
  const done = dropped ? "dropped" : "released";
  if (dryRun) return `${what} would be ${done}${dropped ? "; drop them with --apply" : ""}`;
  return `${what} ${dropped && jobs === 1 ? "was" : "were"} ${done}`;
}
