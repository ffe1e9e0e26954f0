// daybook migrate: brings the book's own tables to the version this daybook needs, and makes a book where there is none.
import type { Command } from "commander";
import { isDaybookError } from "../core/error.ts";
import type { Migration } from "../storage/migrate.ts";
import { looking, openBook, printAnswer, withBook, type Access, type Answer } from "./with-book.ts";

const example = `
A second time it does nothing. Programs that open the book migrate it too, unless they say
\`migrate: false\`; run this first to do it at a moment of your choice.

Example:
  $ daybook migrate --book shop.db --dry-run
  $ daybook migrate --book shop.db`;

type Step = Pick<Migration, "number" | "name">;

const migrating: Access = { attach: false, migrate: true };

export function migrate(program: Command): void {
  program
    .command("migrate")
    .description("bring the book's own tables up to date, or make a new book")
    .option("--dry-run", "list what is pending and change nothing")
    .addHelpText("after", example)
    .action(async (options: { dryRun?: boolean }, command: Command) => {
      const { created, pending } = await findPending(command);
      if (options.dryRun === true) return printAnswer(command, dryAnswer(created, pending));
      await withBook(command, migrating, async (book) => {
        const { location, schemaVersion } = await book.info();
        return {
          json: { dryRun: false, location, created, schemaVersion, applied: pending.map(toJson), pending: [] },
          text: () => inWords({ location, created, schemaVersion, applied: pending }),
        };
      });
    });
}

/** Asks by trying to look: a book that is not up to date says which version it has. */
async function findPending(command: Command): Promise<{ created: boolean; pending: readonly Step[] }> {
  const { migrations } = await import("../open/migrations.ts");
  try {
    await (await openBook(command, looking)).close();
    return { created: false, pending: [] };
  } catch (error) {
    if (!isDaybookError(error)) throw error;
    const { found, known, sqlstate } = error.details;
    // On PostgreSQL it is the database that was not found, and that one is not ours to make.
    if (error.code === "not_found" && sqlstate === undefined) return { created: true, pending: migrations };
    if (error.code !== "incompatible" || typeof found !== "number" || typeof known !== "number") throw error;
    if (found > known) throw error;
    return { created: found === 0, pending: migrations.filter(({ number }) => number > found) };
  }
}

function dryAnswer(created: boolean, pending: readonly Step[]): Answer {
  return {
    json: { dryRun: true, created, applied: [], pending: pending.map(toJson) },
    text: () =>
      pending.length === 0
        ? "nothing is pending"
        : [created ? "would make a new book and apply:" : "would apply:", ...pending.map(line)].join("\n"),
  };
}

type Done = { location: string; created: boolean; schemaVersion: number; applied: readonly Step[] };

function inWords({ location, created, schemaVersion, applied }: Done): string {
  if (applied.length === 0) return `${location} is up to date: schema version ${schemaVersion}`;
  const end = `${location} ${created ? "was made and" : ""} has schema version ${schemaVersion}`;
  return ["applied:", ...applied.map(line), end.replace("  ", " ")].join("\n");
}

const line = ({ number, name }: Step): string => `  ${number} ${name}`;
const toJson = ({ number, name }: Step): Step => ({ number, name });
