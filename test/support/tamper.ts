// A user's SQL may not write to Daybook's tables. Tests that damage a book on purpose come in here, past that check.
import type { Book } from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { Sql, type Value } from "../../src/storage/sql.ts";
import type { Row } from "../../src/storage/store.ts";

type Tampering = {
  readonly now: number;
  sql<R extends object = Row>(strings: TemplateStringsArray, ...values: Value[]): Promise<R[]>;
};

export function tamper<T>(book: Book, work: (tx: Tampering) => PromiseLike<T>): Promise<T> {
  return roomsOf(book).store.write(async (tx) =>
    work({ now: tx.now, sql: async (strings, ...values) => tx.all(new Sql(strings, values)) }),
  );
}
