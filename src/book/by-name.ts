// The book for callers from elsewhere (a shell, another language, a remote program), who can list no definition.
import { roomsOf, seesAll } from "../open/rooms.ts";
import { createBook, type Book } from "./book.ts";

/** The same book, in which a job is taken by a name that the book does not know: with the defaults, and the answer says so. */
export function takingNames(book: Book): Book {
  return createBook(roomsOf(book), book.tenantId, { whole: seesAll(book), byName: true });
}
