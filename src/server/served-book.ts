// One book as the server sees it: the handle of the whole book, and one for each tenant that is asked for.
import type { Book } from "../book/book.ts";
import { createBook } from "../book/create-book.ts";
import { checkTenant } from "../core/name.ts";
import { roomsOf } from "../open/rooms.ts";

export type ServedBook = {
  readonly whole: Book;
  tenant(id: string): Book;
};

/** A handle costs some closures, so those of the tenants that are asked for often are kept. */
const handlesMax = 1000;

/** Names of jobs are taken on trust: they may be hosted by other processes, or by workers in other languages. */
export function serveBook(book: Book): ServedBook {
  const rooms = roomsOf(book);
  const handles = new Map<string, Book>();
  return {
    whole: createBook(rooms, book.tenantId, { whole: true, namesOnTrust: true }),
    tenant(id) {
      const known = handles.get(id);
      if (known !== undefined) return known;
      const made = createBook(rooms, checkTenant(id), { whole: false, namesOnTrust: true });
      const [oldest] = handles.keys();
      if (handles.size >= handlesMax && oldest !== undefined) handles.delete(oldest);
      handles.set(id, made);
      return made;
    },
  };
}
