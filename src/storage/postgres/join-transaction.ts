// A unit in a transaction that a user began on a connection of their own. It ends with that transaction, so here nothing is
// committed and nothing is run again: what the unit did stands behind a savepoint until the user says what becomes of it.
import type { ClientBase, QueryConfig } from "pg";
import { invalid, isDaybookError, type DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Awaitable, JoinedClient, Tx } from "../store.ts";
import { control, integerTypes, loadDriver, quoteName, redactUrl, type Session } from "./connect.ts";
import { fromPostgresError } from "./postgres-error.ts";
import type { PostgresParts } from "./postgres-store.ts";
import { PostgresTx } from "./postgres-tx.ts";

const savepoint = "daybook_join";

export async function joinTransaction<T>(
  parts: PostgresParts,
  client: JoinedClient,
  unit: (tx: Tx) => Awaitable<T>,
  tenant: string,
): Promise<T> {
  const joined = parts.keep("joined clients", () => new WeakSet<object>());
  if (typeof client?.query !== "function") {
    throw invalid("book.join takes a client of pg on which you began a transaction, and then a function");
  }
  if (joined.has(client)) throw invalid("this client is in another book.join already: await that one first");
  joined.add(client);
  try {
    return await runJoined(parts, await sessionOf(client), unit, tenant);
  } finally {
    joined.delete(client);
  }
}

async function runJoined<T>(
  parts: PostgresParts,
  session: Session,
  unit: (tx: Tx) => Awaitable<T>,
  tenant: string,
): Promise<T> {
  await begin(parts, session);
  const tx = new PostgresTx(parts, session, tenant, { forgiving: true });
  let result: T;
  try {
    const settings = await enter(parts, session);
    result = await unit(tx);
    if (tx.doomed !== undefined) throw tx.doomed;
    tx.end();
    await tx.idle();
    await leave(parts, session, { settings, channels: tx.channels });
  } catch (error) {
    tx.end();
    await tx.idle();
    // The settings are undone with it. A transaction that has ended, or failed as a whole, has no savepoint to go back to.
    await session.query(`rollback to savepoint ${savepoint}`).catch(() => undefined);
    await session.query(`release savepoint ${savepoint}`).catch(() => undefined);
    throw error;
  }
  await control(session, `release savepoint ${savepoint}`, parts.server).catch((error: unknown) => {
    throw hasEnded(error);
  });
  return result;
}

/** The client as this room uses connections, with whole numbers as numbers. A user's client need not take a statement before the
 *  one before it is done, so it is given one at a time. */
async function sessionOf(client: JoinedClient): Promise<Session> {
  const types = integerTypes(await loadDriver());
  let last: Promise<unknown> = Promise.resolve();
  const query = (given: string | QueryConfig): Promise<unknown> => {
    const asked = last.then(() => {
      if (client.getTransactionStatus?.() === "I") throw hasEnded();
      return client.query(typeof given === "string" ? { text: given } : { types, ...given });
    });
    last = asked.catch(() => undefined);
    return asked;
  };
  return { query: query as ClientBase["query"], getTypeParser: types.getTypeParser };
}

function hasEnded(cause?: unknown): DaybookError {
  return invalid(
    "the transaction given to book.join has ended: begin it before, commit it after, and use a client of its own, not a pool",
    { cause },
  );
}

async function begin({ server }: PostgresParts, session: Session): Promise<void> {
  try {
    await control(session, `savepoint ${savepoint}`, server);
  } catch (error) {
    const state = isDaybookError(error) ? error.details["sqlstate"] : undefined;
    if (state === "25P02")
      throw invalid("the transaction given to book.join has failed: roll it back", { cause: error });
    throw state === "25P01" ? hasEnded(error) : error;
  }
}

type Settings = { readonly path: string; readonly patience: string };

type Found = Settings & {
  readonly database: string;
  readonly started: string;
  readonly isolation: string;
  readonly readOnly: string;
};

const whereAmI = `pg_catalog.current_database() as database, pg_catalog.pg_postmaster_start_time()::text as started`;

/** Checks that the transaction is in the book's own database and fit to be joined, and makes its settings those of the book. */
async function enter(parts: PostgresParts, session: Session): Promise<Settings> {
  const { server, pool } = parts;
  const found = await one<Found>(
    session,
    `select ${whereAmI}, pg_catalog.current_setting('transaction_isolation') as isolation,
      pg_catalog.current_setting('transaction_read_only') as "readOnly",
      pg_catalog.current_setting('search_path') as path, pg_catalog.current_setting('lock_timeout') as patience`,
  );
  const ours = await one<Pick<Found, "database" | "started">>(pool, `select ${whereAmI}`);
  if (found.database !== ours.database || found.started !== ours.started) {
    throw invalid(
      `the transaction given to book.join is in another database, "${found.database}": the book is in ${redactUrl(server.url)}`,
    );
  }
  if (found.readOnly === "on") throw invalid("the transaction given to book.join may only read: begin it read write");
  // Its snapshot would hide what was committed since, and unlike a serializable one it would not be told of it.
  if (found.isolation === "repeatable read") {
    throw invalid(
      "the transaction given to book.join is repeatable read: begin it read committed, which is the default, or serializable",
    );
  }
  // A limit of the user's own is left as it is.
  const patience = found.patience === "0" ? `${limits.busyMsMax}` : found.patience;
  await set(session, { path: `${quoteName(server.schema)}, pg_temp`, patience });
  return found;

  async function one<Row>(from: Pick<Session, "query">, text: string): Promise<Row> {
    try {
      return (await from.query(text)).rows[0] as Row;
    } catch (error) {
      throw fromPostgresError(error, redactUrl(server.url));
    }
  }
}

async function set(session: Session, { path, patience }: Settings): Promise<void> {
  await session.query({
    text: "select pg_catalog.set_config('search_path', $1, true), pg_catalog.set_config('lock_timeout', $2, true)",
    values: [path, patience],
  });
}

type Leaving = { readonly settings: Settings; readonly channels: ReadonlySet<string> };

/** Tells the listeners once the user commits. This process hears of it by the server as well, so the notice is not marked as
 *  its own. */
async function leave({ channel, origin, server }: PostgresParts, session: Session, ends: Leaving): Promise<void> {
  try {
    for (const each of ends.channels) {
      const values = [channel, `${origin}:joined ${each}`];
      await session.query({ text: "select pg_catalog.pg_notify($1, $2)", values });
    }
    await set(session, ends.settings);
  } catch (error) {
    throw fromPostgresError(error, redactUrl(server.url));
  }
}
