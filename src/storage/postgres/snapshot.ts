// Several reads of one moment on PostgreSQL: a read-only transaction at REPEATABLE READ that lives a few seconds.
import { limits } from "../../core/limits.ts";
import { render, type Sql } from "../sql.ts";
import { endedReader, tooLong, type Reader } from "../store.ts";
import { send } from "./connect.ts";
import { failureOf, giveBack, take } from "./own-transaction.ts";
import { fromPostgresError } from "./postgres-error.ts";
import type { PostgresParts } from "./postgres-store.ts";

export async function readSnapshot<T>(parts: PostgresParts, run: (reader: Reader) => Promise<T>): Promise<T> {
  const client = await take(parts);
  let open = true;
  let expired = false;
  let leaves = false;
  let timer: { cancel(): void } | undefined;
  const reader: Reader = {
    dialect: "postgres",
    async all<R>(statement: Sql) {
      if (!open) throw endedReader();
      const query = render(statement, "postgres");
      if (query.user?.leaves === true) leaves = true;
      return (await send(client, query, parts.server, false)).rows as R[];
    },
  };
  const tooLate = new Promise<never>((_, reject) => {
    const end = (): void => {
      expired = true;
      reject(tooLong());
    };
    timer = parts.clock.after(limits.snapshotMsMax, end, { keepAlive: true });
  });
  try {
    // The server ends a statement that goes on after the snapshot's time, which leaving its connection does not.
    const limit = `set local statement_timeout = ${limits.snapshotMsMax}`;
    const begun = client.query(`begin isolation level repeatable read, read only; ${limit}`);
    begun.catch(() => undefined);
    const result = await Promise.race([run(reader), tooLate]);
    // Without it each statement would have read of a moment of its own.
    await begun.catch((error: unknown) => {
      throw fromPostgresError(error, parts.location);
    });
    return result;
  } finally {
    open = false;
    timer?.cancel();
    // A statement may still be running in a snapshot that took too long: nobody else gets its connection.
    if (expired) client.release(true);
    else giveBack(parts, client, { broken: (await failureOf(client.query("rollback"))) !== undefined, leaves });
  }
}
