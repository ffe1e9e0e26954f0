// daybook info: what a book is.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { isoTime } from "../core/time.ts";
import type { BookInfo } from "../storage/info.ts";
import type { Answer } from "./answer.ts";
import { showBytes, showFields, showTable, showTime } from "./show.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
Example:
  $ daybook info --book shop.db
  $ daybook info --book shop.db --json | jq .schemaVersion`;

export function info(program: Command): void {
  program
    .command("info")
    .description("show what the book is: where, which engine, which schema, how big")
    .addHelpText("after", example)
    .action((_options: unknown, command: Command) => withBook(command, looking, describe));
}

async function describe(book: Book): Promise<Answer> {
  const about = await book.info();
  const sessionsRunning = await countRunning(book);
  return {
    json: {
      ...about,
      migrations: about.migrations.map((each) => ({ ...each, appliedAt: isoTime(each.appliedAt) })),
      sessionsRunning,
    },
    text: () => inWords(about, sessionsRunning),
  };
}

// Sessions that ended without a word count until another process has noticed; `daybook sessions` shows their last beat.
async function countRunning(book: Book): Promise<number> {
  const [row] = await book.read(
    (tx) => tx.sql<{ count: number }>`select count(*) as count from daybook_session where status = 'running'`,
  );
  return row?.count ?? 0;
}

async function inWords(about: BookInfo, sessionsRunning: number): Promise<string> {
  const sqlite = about.dialect === "sqlite";
  const fields = await showFields([
    ["location", about.location],
    ["engine", `${sqlite ? "SQLite" : "PostgreSQL"} ${about.engine}`],
    ...(about.schema === null ? [] : ([["schema", about.schema]] as const)),
    ["schema version", String(about.schemaVersion)],
    ["size", showBytes(about.bytes)],
    ...(sqlite ? ([["write-ahead log", showBytes(about.walBytes)]] as const) : []),
    ["sessions", `${sessionsRunning} running`],
  ]);
  const rows = about.migrations.map(({ number, name, appliedAt }) => {
    const { ago, exact } = showTime(appliedAt);
    return [String(number), name, `${exact} (${ago})`];
  });
  return `${fields}\n\n${await showTable(["migration", "name", "applied"], rows)}`;
}
