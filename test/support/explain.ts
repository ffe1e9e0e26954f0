// What an engine would do for the statements that a question is answered by.
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { render, type Sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";

/** The steps of the plans of all that `ask` reads. */
export async function plansOf(store: Store, url: string, ask: () => Promise<unknown>): Promise<string[]> {
  const asked: Sql[] = [];
  const { read, readHeavy, readPage } = store;
  Object.assign(store, {
    read: (statement: Sql) => (asked.push(statement), read(statement)),
    readHeavy: (statement: Sql, who?: object) => (asked.push(statement), readHeavy(statement, who)),
    readPage: (statement: Sql, who?: object) => (asked.push(statement), readPage(statement, who)),
  });
  try {
    await ask();
  } finally {
    Object.assign(store, { read, readHeavy, readPage });
  }
  return store.dialect === "sqlite" ? ofSqlite(url, asked) : ofPostgres(url, asked);
}

function ofSqlite(url: string, asked: readonly Sql[]): string[] {
  using db = new DatabaseSync(url, { readOnly: true });
  return asked.flatMap((statement) => {
    const { text } = render(statement, "sqlite");
    return (db.prepare(`explain query plan ${text}`).all() as { detail: string }[]).map(({ detail }) => detail);
  });
}

async function ofPostgres(url: string, asked: readonly Sql[]): Promise<string[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // So few rows would be read faster one after the other; what matters is what many could be found by.
    await client.query("set search_path to daybook; set enable_seqscan to off; set enable_bitmapscan to off");
    const steps: string[] = [];
    for (const statement of asked) {
      const { text } = render(statement, "postgres");
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (generic_plan) ${text}`);
      steps.push(...rows.map((row) => row["QUERY PLAN"]));
    }
    return steps;
  } finally {
    await client.end();
  }
}

const large =
  "(?:job|line|run|event|call|call_attempt|dead_letter|record|record_version|record_commit|record_change|run_rollup|run_log)";

/** Those that read a table whole which may hold many rows. */
export function wholeReads(steps: readonly string[]): string[] {
  return steps.filter((step) => new RegExp(`(?:^SCAN|Seq Scan on) (?:daybook_)?${large}\\b(?!.* USING )`).test(step));
}
