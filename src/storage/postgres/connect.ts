// Connections to PostgreSQL. The driver is an optional peer: a book in a file must not need it.
import type { Client, ClientConfig, Pool } from "pg";
import type pg from "pg";
import { createHash } from "node:crypto";
import { DaybookError, invalid } from "../../core/error.ts";
import type { Query } from "../sql.ts";
import type { Fault } from "../sqlite/connection.ts";
import { fromPostgresError } from "./postgres-error.ts";

export type Server = {
  readonly url: string;
  readonly schema: string;
  readonly fault?: Fault | undefined;
};

export type Session = Pick<Client, "query">;

const connectMsMax = 5000;

export async function loadDriver(): Promise<typeof pg> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw new DaybookError("unavailable", 'a book on PostgreSQL needs the package "pg": npm install pg', {
      cause: error,
    });
  }
}

/** Without its password, so that it can be shown. */
export function redactUrl(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid("the PostgreSQL URL cannot be read: write postgres://user:password@host:port/database");
  }
  if (parsed.password !== "") parsed.password = "…";
  return decodeURI(parsed.toString());
}

export async function connectClient(server: Server): Promise<Client> {
  const driver = await loadDriver();
  const client = new driver.Client(clientConfig(driver, server));
  // Without a listener a lost connection would end the process; the next query on it says what happened.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query(searchPath(server.schema));
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw fromPostgresError(error, redactUrl(server.url));
  }
}

export async function createPool(server: Server, connections: number): Promise<Pool> {
  const driver = await loadDriver();
  const pool = new driver.Pool({ ...clientConfig(driver, server), max: connections, idleTimeoutMillis: 30_000 });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
    // Queued before the first query of whoever asked for the connection; a failure shows in that query.
    client.query(searchPath(server.schema)).catch(() => undefined);
  });
  return pool;
}

function clientConfig(driver: typeof pg, server: Server): ClientConfig {
  return {
    connectionString: server.url,
    application_name: "daybook",
    connectionTimeoutMillis: connectMsMax,
    keepAlive: true,
    pipeline: true,
    types: {
      // Times, counts and sequences are 64 bits wide and travel as text; they are JavaScript numbers everywhere here.
      getTypeParser: (oid: number, format?: "text" | "binary"): unknown =>
        oid === driver.types.builtins.INT8 ? parseInteger : driver.types.getTypeParser(oid, format),
    },
  };
}

function parseInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw invalid(`${text} is too large for a number: select it as text`);
  return value;
}

// The book's schema comes first; the user's own tables in public are found as well.
function searchPath(schema: string): string {
  return `set search_path to ${quoteName(schema)}, public`;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export type Answer = { rows: unknown[]; count: number };

/** Sends one statement. Engine statements are prepared once per connection, by a name made from their text. */
export async function send(session: Session, query: Query, server: Server, prepared = true): Promise<Answer> {
  try {
    server.fault?.("before", query.text);
    const values = query.params as unknown[];
    // The extended protocol refuses a second statement in one text, which the simple one would run.
    const how = prepared ? { name: statementName(query.text) } : { queryMode: "extended" };
    const result = await session.query({ text: query.text, values, ...how });
    server.fault?.("after", query.text);
    return { rows: result.rows, count: result.rowCount ?? 0 };
  } catch (error) {
    throw fromPostgresError(error, redactUrl(server.url));
  }
}

const names = new Map<string, string>();

function statementName(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = createHash("sha256").update(text).digest("base64url").slice(0, 22);
    names.set(text, name);
  }
  return name;
}
