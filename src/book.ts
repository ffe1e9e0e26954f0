// The book as its user sees it. One per open(); book.tenant(id) is the same book seen by one tenant.
import { DaybookError } from "./core/error.ts";
import { checkTenant } from "./core/name.ts";
import { backupBook, type BackupReport } from "./storage/backup.ts";
import { readInfo, type BookInfo } from "./storage/info.ts";
import type { Awaitable, Store } from "./storage/store.ts";
import { refuseInsideUnit, runUnit } from "./storage/unit.ts";
import type { Attachment } from "./telemetry/attach.ts";
import { examine, type Finding } from "./examine.ts";
import { openSessions, type Sessions } from "./telemetry/sessions.ts";
import { readTx, userTx, type ReadTx, type UserTx } from "./user-tx.ts";

export type Book = AsyncDisposable & {
  /** Where the book is, without a password. */
  readonly location: string;
  readonly tenantId: string;
  /** The id of this process's session; null when the book was opened with `attach: false`. */
  readonly sessionId: string | null;
  readonly sessions: Sessions;
  /** Runs `work` in one transaction: all of it happens, or none of it, and when this resolves it is on disk. It may
   *  run more than once, so it must have no effects outside `tx`.
   *
   *  ```ts
   *  await book.write(async (tx) => {
   *    await tx.sql`insert into note (body) values (${"milk"})`;
   *    await tx.sql`update counter set value = value + 1`;
   *  });
   *  ``` */
  write<T>(work: (tx: UserTx) => Awaitable<T>): Promise<T>;
  /** Reads several things of one moment, off the event loop.
   *
   *  ```ts
   *  const notes = await book.read((tx) => tx.sql<{ body: string }>`select body from note order by id`);
   *  ``` */
  read<T>(work: (tx: ReadTx) => Promise<T>): Promise<T>;
  /** The same book seen by one tenant. Closing either closes both. */
  tenant(id: string): Book;
  /** Copies the book to `path` while it is in use, checks the copy, and only then gives it its name. */
  backup(path: string, options?: { overwrite?: boolean }): Promise<BackupReport>;
  /** Checks every invariant of the book; an empty list means all is well. */
  doctor(): Promise<Finding[]>;
  info(): Promise<BookInfo>;
  /** Waits for what was begun, ends the session and closes the book. */
  close(): Promise<void>;
};

export function createBook(store: Store, attachment: Attachment | undefined, tenantId: string): Book {
  const refuse = (verb: string): void => refuseInsideUnit(`book.${verb}`);
  const close = async (): Promise<void> => {
    refuse("close");
    // A book that can no longer be written is still closed; its session is then found silent by the others.
    const stopped = await settle(attachment?.detach());
    await store.close();
    if (stopped !== undefined && !(stopped instanceof DaybookError && stopped.code === "closed")) throw stopped;
  };
  return {
    location: store.location,
    tenantId,
    get sessionId() {
      return attachment?.id ?? null;
    },
    sessions: openSessions(store, attachment),
    async write(work) {
      refuse("write");
      return store.write((tx) => runUnit(store.clock, (unit) => work(userTx(tx, unit))), {
        by: "user",
        tenant: tenantId,
      });
    },
    async read(work) {
      refuse("read");
      return store.snapshot((reader) => work(readTx(reader, tenantId)));
    },
    tenant: (id) => createBook(store, attachment, checkTenant(id)),
    async backup(path, options) {
      refuse("backup");
      return backupBook(store, path, options);
    },
    async doctor() {
      refuse("doctor");
      return examine(store);
    },
    async info() {
      refuse("info");
      return readInfo(store);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function settle(work: Promise<void> | undefined): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error;
  }
}
