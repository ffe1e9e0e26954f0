// Backups in the book's own folder: what can be asked for from elsewhere, since it names no path.
import { maybe, whole } from "../field.ts";
import { listed } from "../list.ts";
import { bytes, count, when } from "../shown.ts";
import { admin } from "../verb.ts";

export const backups = {
  create: admin({
    words: "backups create",
    http: "POST /backups",
    of: "book",
    background: true,
    needs: "read",
    files: true,
    about: "copy the book into its own folder of backups while it is in use, and check the copy",
    more: `The folder is "backups" among the files of the book (shop.db-files/backups for shop.db). "backup" writes to a
file that you name. A book on PostgreSQL is backed up by pg_dump or pg_basebackup.`,
    input: { keep: maybe(whole("remove older ones, so that so many stay", 1, 10_000)) },
    examples: ["backups create --keep 7"],
    run: (book, { keep }) => book.backups.create(keep === undefined ? {} : { keep }),
    show: ({ name, bytes: size, tables, removed }) =>
      `${name}: ${bytes(size)}, ${count(tables, "table")}, checked${removed.length === 0 ? "" : `; ${count(removed.length, "older one")} removed`}`,
  }),

  list: listed({
    words: "backups list",
    of: "book",
    files: true,
    about: "list the backups in the book's own folder, the latest first",
    find: (book) => book.backups.list(),
    columns: {
      name: ({ name }) => name,
      size: ({ bytes: size }) => bytes(size),
      made: ({ createdAt }) => when(createdAt),
    },
    none: "there are no backups here",
  }),
};
