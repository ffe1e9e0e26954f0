// npm run schema: writes down what all migrations together produce, for both back ends, so that a change of the schema
// is seen whole in review and cannot happen by accident (test/schema.test.ts compares).
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "../src/open/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import type { Dialect } from "../src/storage/sql.ts";
import type { Store } from "../src/storage/store.ts";
import { freshDatabase } from "../test/support/postgres.ts";
import { dumpPostgres } from "./postgres-dump.ts";
import { dumpSqlite } from "./sqlite-dump.ts";

export async function dumpSchema(store: Store): Promise<string> {
  const title = store.dialect === "sqlite" ? "SQLite" : "PostgreSQL";
  const head = `-- The schema of a book on ${title}, as all migrations leave it.\n-- Written by "npm run schema": do not edit.\n`;
  const statements = store.dialect === "sqlite" ? await dumpSqlite(store) : await dumpPostgres(store);
  return `${[head, ...statements.map((statement) => `${statement};\n`)].join("\n")}`;
}

export function dumpPath(dialect: Dialect): string {
  return join(import.meta.dirname, `${dialect}.sql`);
}

async function writeDump(url: string): Promise<void> {
  const store = await openStore(url, migrations);
  try {
    writeFileSync(dumpPath(store.dialect), await dumpSchema(store));
    console.log(`wrote ${dumpPath(store.dialect)}`);
  } finally {
    await store.close();
  }
}

if (import.meta.main) {
  await writeDump(":memory:");
  const database = await freshDatabase();
  try {
    await writeDump(database.url);
  } finally {
    await database.drop();
  }
}
