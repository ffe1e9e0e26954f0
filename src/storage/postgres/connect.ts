// Connections to PostgreSQL. The driver is an optional peer: a book in a file must not need it.
import type { Client, ClientConfig, Connection, CustomTypesConfig, Pool, PoolClient } from "pg";
import type pg from "pg";
import { createHash } from "node:crypto";
import { systemClock } from "../../core/clock.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { remember, rememberFor } from "../../core/remember.ts";
import type { Built, BuiltAnswer, Query } from "../sql.ts";
import type { Fault } from "../sqlite/connection.ts";
import { fromPostgresError, isStalePlan } from "./postgres-error.ts";

export type Server = {
  readonly url: string;
  readonly schema: string;
  readonly fault?: Fault | undefined;
};

export type Session = Pick<Client, "query"> & Partial<Pick<Client, "getTypeParser">>;

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
  const parsed = URL.parse(url);
  // A "#", "?" or "/" in a password ends the name of the server too early, and the rest of it would be shown.
  if (parsed === null || parsed.hash !== "" || parsed.pathname.includes("@") || /^\?[^=]*@/.test(parsed.search)) {
    throw invalid(
      "the PostgreSQL URL cannot be read: write postgres://user:password@host:port/database, " +
        "with %23, %3F and %2F for #, ? and / in the password",
    );
  }
  if (parsed.password !== "") parsed.password = "…";
  // The driver also takes it from here, and other programs that of a key.
  for (const name of parsed.searchParams.keys()) if (/password/i.test(name)) parsed.searchParams.set(name, "…");
  return parsed.toString().replaceAll("%E2%80%A6", "…");
}

export async function connectClient(server: Server, ...settings: readonly string[]): Promise<Client> {
  const driver = await loadDriver();
  let client: Client | undefined;
  try {
    // It reads the files that the URL names.
    client = new driver.Client(clientConfig(driver, server));
    // Without a listener a lost connection would end the process; the next query on it says what happened.
    client.on("error", () => undefined);
    await client.connect();
    await client.query([searchPath(server.schema), ...settings].join("; "));
    return client;
  } catch (error) {
    await client?.end().catch(() => undefined);
    throw fromPostgresError(error, redactUrl(server.url));
  }
}

/** `metered`: a connection whose answer grows past `limits.readBytesMax` is ended. */
export async function createPool(server: Server, connections: number, metered = false): Promise<Pool> {
  const driver = await loadDriver();
  const pool = new driver.Pool({
    ...clientConfig(driver, server),
    max: connections,
    idleTimeoutMillis: 30_000,
    // An idle connection keeps no process alive, as a file does not.
    allowExitOnIdle: true,
    // The pool hands a connection out once it has found its schema.
    verify: (client, done) => {
      client.query(settingsOf(server).join("; ")).then(() => done(), done);
    },
  });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
    takeTurns(client);
    if (metered) meter(client);
  });
  return pool;
}

/** Only what says so when it begins may write: reads outside of transactions must not, and neither may the statements
 *  of a unit whose `begin` failed, because each of them would be kept at once. */
export const readsOnly = "set default_transaction_read_only = on";

/** A statement that waits too long for a lock fails with `busy`, as on SQLite. A limit of the operator's own is left as it is. */
export const patience = `select pg_catalog.set_config('lock_timeout', '${limits.busyMsMax}', false)
  where pg_catalog.current_setting('lock_timeout') = '0'`;

/** Undoes what a user's own statements may have left behind in a session: locks, cursors, tables of its own, a role, settings.
 *  What was prepared stays. */
export async function freshen(client: PoolClient, server: Server): Promise<void> {
  const left = "select pg_catalog.pg_advisory_unlock_all(); close all; unlisten *; discard temp; discard sequences";
  const settings = "reset session authorization; reset role; reset all";
  await client.query([left, settings, ...settingsOf(server)].join("; "));
}

function settingsOf(server: Server): string[] {
  return [searchPath(server.schema), readsOnly, patience];
}

const largePieceBytes = 32_768;

// A large answer arrives in pieces of 64 KiB, and Node hands over dozens of them before other callbacks have a turn: 100,000
// rows held the loop for 100 ms. After each large piece the others come first.
function takeTurns(client: PoolClient): void {
  const { stream } = (client as unknown as Connected).connection;
  stream.on("data", (piece: Buffer) => {
    if (piece.length < largePieceBytes) return;
    stream.pause();
    void systemClock.nextTurn().then(() => stream.resume());
  });
}

const answered = rememberFor((_client: PoolClient) => ({ bytes: 0 }));

function meter(client: PoolClient): void {
  const { stream } = (client as unknown as Connected).connection;
  const seen = answered(client);
  stream.on("data", (piece: Buffer) => {
    seen.bytes += piece.length;
    if (seen.bytes > limits.readBytesMax) stream.destroy();
  });
}

/** A new answer begins on this metered connection. */
export function beginAnswer(client: PoolClient): void {
  answered(client).bytes = 0;
}

export function isAnswerTooLarge(client: PoolClient): boolean {
  return answered(client).bytes > limits.readBytesMax;
}

function clientConfig(driver: typeof pg, server: Server): ClientConfig {
  return {
    connectionString: server.url,
    application_name: "daybook",
    connectionTimeoutMillis: connectMsMax,
    keepAlive: true,
    pipeline: true,
    types: integerTypes(driver),
  };
}

/** Times, counts and sequences are 64 bits wide and travel as text; they are JavaScript numbers everywhere here. */
export function integerTypes({ types }: typeof pg): CustomTypesConfig {
  return {
    getTypeParser: (oid: number, format?: "text" | "binary"): unknown =>
      oid === types.builtins.INT8 ? parseInteger : types.getTypeParser(oid, format),
  };
}

function parseInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw invalid(`${text} is too large for a number: select it as text`);
  return value;
}

// The book's own schema and the server's, in which other users make nothing. They may make functions and operators in public
// that fit a call of ours better than the server's own, and would run as us. What a session made for itself comes last.
function searchPath(schema: string): string {
  return `set search_path to ${quoteName(schema)}, pg_temp`;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

// Taken now: a test of the user's own may replace it by one that never comes.
const { nextTick } = process;

type Connected = { readonly connection: Connection };

// What is sent in one breath leaves in one piece: a write of its own costs a statement more than the server takes for it.
function sendTogether(session: Session): void {
  const stream = (session as unknown as Partial<Connected>).connection?.stream;
  if (stream === undefined || stream.writableCorked > 0) return;
  stream.cork();
  nextTick(() => stream.uncork());
}

export type Answer = { rows: unknown[]; count: number };

/** Sends one statement. Engine statements are prepared once per connection, by a name made from their text; those planned
 *  otherwise have another name. */
export async function send(
  session: Session,
  query: Query,
  server: Server,
  prepared: boolean | "narrow" = true,
): Promise<Answer> {
  const { text, params, built } = query;
  // The extended protocol refuses a second statement in one text, which the simple one would run.
  const prefix = prepared === "narrow" ? "narrow " : "";
  const how = prepared === false ? { queryMode: "extended" } : { name: prefix + statementName(text) };
  if (built !== undefined) return sendBuilt(session, query, server, built);
  const result = await guarded(session, server, text, () =>
    session.query({ text, values: params as unknown[], ...how }),
  );
  return { rows: result.rows, count: result.rowCount ?? 0 };
}

/** What has parsers of its own in the driver: times, and lists of them and of numbers. A builder that reads raw values wants none. */
const rawTypes: ReadonlySet<number> = new Set([20, 1082, 1114, 1184, 1186, 1231, 1115, 1185, 1187, 1182]);

async function sendBuilt(session: Session, { text, params }: Query, server: Server, { raw }: Built): Promise<Answer> {
  const asText: CustomTypesConfig = {
    getTypeParser: (oid: number, format?: "text" | "binary"): unknown =>
      (rawTypes.has(oid) ? undefined : session.getTypeParser?.(oid, format)) ?? ((value: string) => value),
  };
  const config = { text, values: params as unknown[], rowMode: "array" as const, queryMode: "extended" };
  const { fields, rows, rowCount } = await guarded(session, server, text, () =>
    session.query<unknown[]>(raw ? { ...config, types: asText } : config),
  );
  const count = rowCount ?? 0;
  const answer: BuiltAnswer = { columns: fields.map(({ name }) => name), rows, count };
  return { rows: [answer], count };
}

async function guarded<T>(session: Session, server: Server, text: string, run: () => Promise<T>): Promise<T> {
  try {
    server.fault?.("before", text, session);
    sendTogether(session);
    const result = await run();
    server.fault?.("after", text, session);
    return result;
  } catch (error) {
    throw fromPostgresError(error, redactUrl(server.url));
  }
}

/** Sends a statement outside of any transaction, where one that was prepared too long ago may be sent again. */
export async function sendAlone(session: Session, query: Query, server: Server): Promise<Answer> {
  try {
    return await send(session, query, server);
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    return send(session, query, server, false);
  }
}

/** Sends a statement that begins or ends something, and returns what the server says it did. */
export async function control(session: Session, text: string, server: Server): Promise<string> {
  return (await guarded(session, server, text, () => session.query(text))).command;
}

/** As many as the engine has texts, and room for those of many tables. */
const namesMax = 10_000;

const statementName = remember((text: string) => createHash("sha256").update(text).digest("base64url").slice(0, 22), {
  max: namesMax,
});
