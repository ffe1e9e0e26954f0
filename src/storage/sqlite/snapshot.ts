// Several reads of one moment, on a reader that nobody else uses meanwhile.
import { limits } from "../../core/limits.ts";
import { render, type Sql } from "../sql.ts";
import { endedReader, type Reader, type Some } from "../store.ts";
import type { SqliteReader } from "./reader.ts";

export async function readSnapshot<T>(reader: SqliteReader, read: (reader: Reader) => Promise<T>): Promise<T> {
  let open = true;
  await reader.begin();
  try {
    const some = async <R>(statement: Sql, bytesMax?: number): Promise<Some<R>> => {
      if (!open) throw endedReader();
      return (await reader.all(render(statement, "sqlite"), bytesMax)) as Some<R>;
    };
    return await read({
      dialect: "sqlite",
      all: async <R>(statement: Sql) => (await some<R>(statement)).rows,
      page: (statement) => some(statement, limits.pageBytesMax),
    });
  } finally {
    open = false;
    if (reader.alive) await reader.end().catch(() => void reader.kill());
  }
}
