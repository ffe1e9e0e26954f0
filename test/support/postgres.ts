import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { type PostgresServer, startServer } from "./postgres-server.ts";

let own: Promise<PostgresServer> | undefined;

/** The server of this test run. A file that is run alone, without the runner's global setup, starts one for itself. */
export async function postgresUrl(): Promise<string> {
  const given = process.env["DAYBOOK_TEST_POSTGRES"];
  if (given) return given;
  own ??= startServer("shared");
  return (await own).url;
}

export type FreshDatabase = { url: string; drop(): Promise<void> };

/** An empty database that no other test sees, or a copy of `template`. */
export async function freshDatabase(template = "template0"): Promise<FreshDatabase> {
  const server = await postgresUrl();
  const name = `daybook_${randomUUID().replaceAll("-", "")}`;
  // Copying files takes half the time of the default, which writes every page to the log.
  await execute(server, `create database ${name} template ${template} strategy file_copy`);
  const url = new URL(server);
  url.pathname = name;
  return { url: url.href, drop: () => execute(server, `drop database if exists ${name} with (force)`) };
}

let migrated: Promise<string> | undefined;

/** A database with the book's schema in it: a copy of one that was migrated, which takes a tenth of the time. */
export async function migratedDatabase(): Promise<FreshDatabase> {
  return freshDatabase(process.env["DAYBOOK_TEST_TEMPLATE"] ?? (await (migrated ??= makeTemplate())));
}

/** Migrates a database that others are copied from, and returns its name. */
export async function makeTemplate(): Promise<string> {
  const { url } = await freshDatabase();
  const store = await openStore(url, migrations);
  await store.close();
  return new URL(url).pathname.slice(1);
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A server of this test alone, which writes to a disk and waits for it: what it has committed survives `kill()`. */
export function durablePostgres(): Promise<PostgresServer> {
  return startServer("durable");
}
