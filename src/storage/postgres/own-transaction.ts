// A unit on a connection of its own: the engine's at READ COMMITTED, a user's at SERIALIZABLE. It is run again when it
// lost against a concurrent one or its connection broke, but never once its commit is under way: then only the server
// knows what became of it.
import type { Client, PoolClient } from "pg";
import { DaybookError } from "../../core/error.ts";
import { killPoint } from "../../core/fault.ts";
import { limits } from "../../core/limits.ts";
import { jitter } from "../../core/random.ts";
import type { Awaitable, Tx, WriteOptions } from "../store.ts";
import type { PostgresParts } from "./postgres-store.ts";
import { isConflictingTransaction, isConnectionLost, fromPostgresError } from "./postgres-error.ts";
import { PostgresTx } from "./postgres-tx.ts";

export async function runOwnTransaction<T>(
  parts: PostgresParts,
  unit: (tx: Tx) => Awaitable<T>,
  options: WriteOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(parts, unit, options);
    } catch (error) {
      const again = isConflictingTransaction(error) || (isConnectionLost(error) && !parts.closing());
      if (!again || attempt >= limits.conflictRetriesMax) throw error;
      await parts.clock.sleep(jitter(parts.random, Math.min(500, 2 ** attempt), 0.75));
    }
  }
}

async function runOnce<T>(
  parts: PostgresParts,
  unit: (tx: Tx) => Awaitable<T>,
  { by = "engine", tenant = "default" }: WriteOptions,
): Promise<T> {
  const client = await take(parts);
  const tx = new PostgresTx(
    client,
    parts.server,
    { ...parts, now: parts.nextNow(), tenant },
    { forgiving: by === "user" },
  );
  let broken: unknown;
  try {
    // Not awaited: it is on the wire before the unit's first statement, and fails together with it.
    const begun = client.query(`begin isolation level ${by === "user" ? "serializable" : "read committed"}`);
    begun.catch(() => undefined);
    const result = await unit(tx);
    if (tx.doomed !== undefined) throw tx.doomed;
    if (by !== "user" && parts.stamp().due()) await parts.stamp().run(tx);
    tx.end();
    await commit(parts, client, tx.channels);
    for (const run of tx.committed) run();
    parts.woken(tx.channels);
    return result;
  } catch (error) {
    tx.end();
    // What doomed the transaction explains more than what the unit made of it, and decides whether to run it again.
    const cause = tx.doomed ?? error;
    if (isConnectionLost(cause) || unknownOutcome(cause)) broken = cause;
    else await client.query("rollback").catch((failure: unknown) => (broken = failure));
    throw cause;
  } finally {
    client.release(broken !== undefined);
  }
}

async function take(parts: PostgresParts): Promise<PoolClient> {
  try {
    return await parts.pool.connect();
  } catch (error) {
    throw fromPostgresError(error, parts.location);
  }
}

/** Commits, telling other processes which channels woke. */
export async function commit(
  parts: Pick<PostgresParts, "channel" | "location">,
  client: Client | PoolClient,
  channels: ReadonlySet<string>,
): Promise<void> {
  const notices = [...channels].map((each) =>
    client.query({ name: "notify", text: "select pg_notify($1, $2)", values: [parts.channel, each] }),
  );
  killPoint("storage.commit");
  try {
    await Promise.all([...notices, client.query("commit")]);
  } catch (thrown) {
    const error = fromPostgresError(thrown, parts.location);
    if (!isConnectionLost(error)) throw error;
    throw new DaybookError(
      "unknown_outcome",
      `the connection to ${parts.location} was lost while committing: whether the transaction was kept is unknown. ` +
        "Look before you do it again, or make it idempotent with a key",
      { cause: error },
    );
  }
  killPoint("storage.committed");
}

function unknownOutcome(error: unknown): boolean {
  return error instanceof DaybookError && error.code === "unknown_outcome";
}
