// What is written in a book, for tests that look for something that must not be there.
import type { Book } from "../../src/index.ts";
import type { Backend } from "./open-test.ts";

/** Every text in every table of the book. */
export async function allText(book: Book, backend: Backend): Promise<string> {
  const tables = await book.read((tx) =>
    backend === "sqlite"
      ? tx.sql<{ name: string }>`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`
      : tx.sql<{ name: string }>`select table_name as name from information_schema.tables
          where table_schema = 'daybook' and table_type = 'BASE TABLE'`,
  );
  let text = "";
  for (const { name } of tables) {
    const strings = Object.assign([`select * from ${name}`], { raw: [`select * from ${name}`] });
    text += JSON.stringify(await book.read((tx) => tx.sql(strings)), (_key, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
  }
  return text;
}
