import { randomUUID } from "node:crypto";
import { Client } from "pg";
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

/** An empty database that no other test sees. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const server = await postgresUrl();
  const name = `daybook_${randomUUID().replaceAll("-", "")}`;
  // Copying files takes half the time of the default, which writes every page to the log.
  await execute(server, `create database ${name} template template0 strategy file_copy`);
  const url = new URL(server);
  url.pathname = name;
  return { url: url.href, drop: () => execute(server, `drop database if exists ${name} with (force)`) };
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
