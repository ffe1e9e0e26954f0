// Several reads of one moment on PostgreSQL: a read-only transaction at REPEATABLE READ that lives a few seconds.
import { limits } from "../../core/limits.ts";
import { render, type Sql } from "../sql.ts";
import { endedReader, tooLong, type Reader } from "../store.ts";
import { send } from "./connect.ts";
import { fromPostgresError } from "./postgres-error.ts";
import type { PostgresParts } from "./postgres-store.ts";

export async function readSnapshot<T>(parts: PostgresParts, run: (reader: Reader) => Promise<T>): Promise<T> {
  const client = await parts.pool.connect().catch((error: unknown) => {
    throw fromPostgresError(error, parts.location);
  });
  let open = true;
  let expired = false;
  let timer: { cancel(): void } | undefined;
  const reader: Reader = {
    dialect: "postgres",
    async all<R>(statement: Sql) {
      if (!open) throw endedReader();
      return (await send(client, render(statement, "postgres"), parts.server, false)).rows as R[];
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
    client.query("begin isolation level repeatable read, read only").catch(() => undefined);
    return await Promise.race([run(reader), tooLate]);
  } finally {
    open = false;
    timer?.cancel();
    // A statement may still be running in a snapshot that took too long: ending its connection ends it.
    if (expired) client.release(true);
    else
      client.release(
        await client.query("rollback").then(
          () => false,
          () => true,
        ),
      );
  }
}
