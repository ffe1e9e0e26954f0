// daybook backup: a checked copy of the book while it is in use.
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import type { Answer } from "./answer.ts";
import { showBytes } from "./show.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
The copy is one consistent moment of the book. It is checked before it gets its name, so a file of
that name is always whole. A book on PostgreSQL is backed up by pg_dump or pg_basebackup.

Example:
  $ daybook backup --book shop.db backups/shop-monday.db`;

type BackupOptions = { readonly overwrite?: boolean };

export function backup(program: Command): void {
  program
    .command("backup")
    .description("copy the book to a file while it is in use, and check the copy")
    .argument("<path>", "the file to write; its folder must exist")
    .option("--overwrite", "replace a file of that name")
    .addHelpText("after", example)
    .action((path: string, options: BackupOptions, command: Command) =>
      withBook(command, looking, (book, signal) => copy(book, path, options, signal)),
    );
}

async function copy(book: Book, path: string, options: BackupOptions, signal: AbortSignal): Promise<Answer> {
  const before = unfinishedFiles(path);
  const discard = (): void => {
    for (const file of unfinishedFiles(path)) if (!before.includes(file)) rmSync(file, { force: true });
  };
  // The thread that writes the copy cannot be called back, so what it has written is taken away from under it; the
  // second time because it may have been about to begin its journal.
  signal.addEventListener("abort", () => {
    discard();
    systemClock.after(100, discard);
  });
  const report = await book.backup(path, { overwrite: options.overwrite === true });
  return {
    json: report,
    text: () => `${report.path}: ${showBytes(report.bytes)}, ${report.tables} tables, checked`,
  };
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
