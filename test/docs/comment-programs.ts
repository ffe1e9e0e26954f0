// The examples in the doc comments of public functions, each made a program.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as daybook from "../../src/index.ts";
import { root, snippetsOf } from "./snippet.ts";

/** By the name of its file. */
export function commentPrograms(): Record<string, string> {
  return Object.fromEntries(
    publicFiles().flatMap((path) =>
      snippetsOf(readFileSync(join(root, "src", path), "utf8")).map((snippet, index) => {
        const name = `${path.replaceAll(/\W+/g, "-")}-${index + 1}.ts`;
        return [name, asProgram(snippet)];
      }),
    ),
  );
}

/** The files whose names the front door passes on, and the doors beside it. */
function publicFiles(): string[] {
  const door = readFileSync(join(root, "src/index.ts"), "utf8");
  const passedOn = [...door.matchAll(/from "\.\/(.+?)"/g)].map(([, path = ""]) => path);
  return [...new Set([...passedOn, "book/kysely.ts", "book/drizzle.ts"])];
}

const builders = `
import { drizzleOnPostgres, drizzleOnSqlite } from "daybook/drizzle";
import { kyselyOn } from "daybook/kysely";
import { pgTable, serial, varchar } from "drizzle-orm/pg-core";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { PoolClient } from "pg";
`;

/** What the reader of a doc comment has already. */
const prelude = `
const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string() }),
  run: ({ orderId }) => orderId,
});
const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
await using book = await open(":memory:", { use: [sendReceipt, OrderPaid] });
await book.write(async (tx) => {
  await tx.sql\`create table note (id integer primary key, body text not null)\`;
  await tx.sql\`create table counter (value integer not null)\`;
});
`;

/** Gives a snippet every public name, the prelude unless it opens a book itself, and a tx where it uses one. */
function asProgram(snippet: string): string {
  const names = `import { z } from "zod";\nimport { ${Object.keys(daybook).join(", ")} } from "daybook";\n${builders}`;
  if (/\bopen\(/.test(snippet)) return names + snippet;
  const needsTx = /\btx\./.test(snippet) && !/\bbook\./.test(snippet);
  // In a block, a snippet may define anew what the reader has.
  const shown = needsTx ? `await book.write(async (tx) => {\n${snippet}});\n` : `{\n${snippet}}\n`;
  return names + prelude + shown;
}
