// What runs reads apart from the program's own thread. Reads with a deadline on a book in a file run in a process, because
// only a process can be ended in the middle of a statement: Node.js gives no access to sqlite3_interrupt, and a thread that
// is inside SQLite does not end when it is told to. A book in memory is seen by no other process, so there it is a thread,
// as it is for what may take minutes.
// It answers one small message at a time: rows travel in pieces that the main thread asks for, so that neither a long
// statement nor a large answer holds up the event loop.
import { flushCompileCache } from "node:module";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { describeError, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Query } from "../sql.ts";
import { answerTooLarge } from "../store.ts";
import { bindable, openConnection, type Connection } from "./connection.ts";
import { fromSqliteError } from "./sqlite-error.ts";

export type ReaderData = { readonly location: string; readonly writable: boolean };

export type ReaderRequest =
  | { readonly id: number; readonly kind: "query"; readonly query: Query; readonly bytesMax: number | null }
  | { readonly id: number; readonly kind: "more"; readonly of: number }
  | { readonly id: number; readonly kind: "begin" }
  | { readonly id: number; readonly kind: "end" }
  | { readonly id: number; readonly kind: "close" };

export type ReaderAnswer = {
  readonly id: number;
  readonly rows?: unknown[];
  readonly done?: boolean;
  /** Whether there are rows beyond `bytesMax`. */
  readonly cut?: boolean;
  readonly error?: { code: string; message: string; details: Record<string, unknown> };
};

const rowsPerPiece = 200;
const bytesPerPiece = 262_144;

const { location, writable } = (parentPort === null ? JSON.parse(process.argv[2] ?? "{}") : workerData) as ReaderData;
// In memory the writer waits for readers, too. Whoever waited inside of SQLite would keep this thread from those whom the writer
// waits for, so the main thread asks again instead.
const busyMs = location.includes("vfs=memdb") ? 0 : limits.busyMsMax;
// There are several of the processes, and what they hold is not shared.
const small = parentPort === null ? { cacheKb: 8000 } : {};
let connection: Connection | undefined;

type Unfinished = { readonly rows: Iterator<unknown>; readonly bytesMax: number | null; bytes: number };
const unfinished = new Map<number, Unfinished>();

function answer(request: ReaderRequest): Omit<ReaderAnswer, "id"> {
  connection ??= openConnection(location, { readOnly: !writable, busyMs, ...small });
  switch (request.kind) {
    case "query": {
      // A statement of its own: an iterator that is still being read must not be restarted by its twin.
      const rows = connection.db.prepare(request.query.text).iterate(...bindable(request.query.params));
      return piece(request.id, { rows, bytesMax: request.bytesMax, bytes: 0 });
    }
    case "more":
      return piece(request.of, unfinished.get(request.of) ?? { rows: [].values(), bytesMax: null, bytes: 0 });
    case "begin":
      connection.exec("begin");
      // A deferred transaction has no moment until it first reads.
      connection.get({ text: "select count(*) from sqlite_schema", params: [] });
      return {};
    case "end":
      // What nobody went on to ask for would keep the transaction from ending.
      for (const { rows } of unfinished.values()) rows.return?.();
      unfinished.clear();
      if (connection.inTransaction) connection.exec("rollback");
      return {};
    case "close":
      connection.close();
      return {};
  }
}

function piece(id: number, from: Unfinished): { rows: unknown[]; done: boolean; cut?: boolean } {
  const taken: unknown[] = [];
  let bytes = 0;
  unfinished.delete(id);
  try {
    while (taken.length < rowsPerPiece && bytes < bytesPerPiece) {
      const next = from.rows.next();
      if (next.done === true) return { rows: taken, done: true };
      const size = bytesOf(next.value as object);
      // The first row of a page is always on it.
      if (from.bytesMax !== null && from.bytes > 0 && from.bytes + size > from.bytesMax) {
        from.rows.return?.();
        return { rows: taken, done: true, cut: true };
      }
      bytes += size;
      from.bytes += size;
      if (from.bytes > limits.readBytesMax) throw answerTooLarge();
      taken.push(next.value);
    }
  } catch (error) {
    // A statement that found the book busy is under way until it is ended, and keeps the lock of those that come after it.
    from.rows.return?.();
    throw error;
  }
  unfinished.set(id, from);
  return { rows: taken, done: false };
}

/** About what a row takes on its way: a text counts its characters. */
function bytesOf(row: object): number {
  let bytes = 0;
  for (const value of Object.values(row)) {
    bytes += typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 8;
  }
  return bytes;
}

function reply(request: ReaderRequest): ReaderAnswer {
  try {
    return { id: request.id, ...answer(request) };
  } catch (thrown) {
    const error = fromSqliteError(thrown, location);
    const { code, details } = isDaybookError(error) ? error : { code: "internal", details: {} };
    return { id: request.id, error: { code, message: describeError(error).message, details } };
  }
}

if (parentPort === null) {
  // A terminal or a supervisor tells every process of a program to stop; this one goes when its parent wants.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  // The parent holds the other end of this pipe. Should it be killed, this process must not go on with a statement that
  // nobody waits for, and only another thread can see to that.
  const watch = 'require("node:fs").readSync(3, Buffer.alloc(1)); process.kill(process.pid, "SIGKILL");';
  new Worker(watch, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 } });
  process.on("message", (request: ReaderRequest) => void process.send?.(reply(request)));
  process.send?.({ id: 0 });
  // The parent ends this process by a signal, so what it compiled is kept now, where the program keeps what it compiles.
  flushCompileCache();
} else {
  const port = parentPort;
  port.postMessage({ id: 0 });
  port.on("message", (request: ReaderRequest) => {
    port.postMessage(reply(request));
    if (request.kind === "close") port.close();
  });
}
