import { randomUUID } from "node:crypto";
import { Socket } from "node:net";
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

type Operator = { readonly client: Client; readonly socket: Socket };

let operator: Promise<Operator> | undefined;
let asked = 0;

/** One connection for all that this process makes and drops: to open one takes as long as to copy a database. */
async function execute(server: string, statement: string): Promise<void> {
  const { client, socket } = await (operator ??= connect(server));
  if (asked++ === 0) socket.ref();
  try {
    await client.query(statement);
  } finally {
    // A connection that nobody asks anything must not keep its process from ending.
    if (--asked === 0) socket.unref();
  }
}

async function connect(server: string): Promise<Operator> {
  const socket = new Socket();
  const client = new Client({ connectionString: server, stream: () => socket });
  client.on("error", () => undefined); // The server may end before this process does.
  await client.connect();
  return { client, socket };
}

/** A server of this test alone, which writes to a disk and waits for it: what it has committed survives `kill()`. */
export function durablePostgres(): Promise<PostgresServer> {
  return startServer("durable");
}
