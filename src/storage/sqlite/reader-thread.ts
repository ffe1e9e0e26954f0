// The thread that runs heavy reads. It answers one small message at a time: rows travel in chunks that the main thread
// asks for, so that neither a long statement nor a large answer holds up the event loop.
import { parentPort, workerData } from "node:worker_threads";
import { describeError, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Query } from "../sql.ts";
import { bindable, openConnection, type Connection } from "./connection.ts";
import { fromSqliteError } from "./sqlite-error.ts";

export type ReaderData = { readonly location: string; readonly writable: boolean };

export type ReaderRequest =
  | { readonly id: number; readonly kind: "query"; readonly query: Query; readonly snapshot: number | null }
  | { readonly id: number; readonly kind: "more"; readonly of: number }
  | { readonly id: number; readonly kind: "begin"; readonly snapshot: number }
  | { readonly id: number; readonly kind: "end"; readonly snapshot: number }
  | { readonly id: number; readonly kind: "close" };

export type ReaderAnswer = {
  readonly id: number;
  readonly rows?: unknown[];
  readonly done?: boolean;
  readonly error?: { code: string; message: string; details: Record<string, unknown> };
};

const rowsPerChunk = 200;

const { location, writable } = workerData as ReaderData;
// In memory the writer waits for readers, too. Whoever waited inside of SQLite would keep this thread from those whom the writer
// waits for, so the main thread asks again instead.
const busyMs = location.includes("vfs=memdb") ? 0 : limits.busyMsMax;
const connections = new Map<number | null, Connection>();
const unfinished = new Map<number, Iterator<unknown>>();

function connectionOf(snapshot: number | null): Connection {
  let connection = connections.get(snapshot);
  if (connection === undefined) {
    connection = openConnection(location, { readOnly: !writable, busyMs });
    connections.set(snapshot, connection);
  }
  return connection;
}

function answer(request: ReaderRequest): Omit<ReaderAnswer, "id"> {
  switch (request.kind) {
    case "query": {
      const { db } = connectionOf(request.snapshot);
      // A statement of its own: an iterator that is still being read must not be restarted by its twin.
      const rows = db.prepare(request.query.text).iterate(...bindable(request.query.params));
      return chunk(request.id, rows);
    }
    case "more":
      return chunk(request.of, unfinished.get(request.of) ?? [].values());
    case "begin": {
      const connection = connectionOf(request.snapshot);
      if (!connection.inTransaction) connection.exec("begin");
      // A deferred transaction has no moment until it first reads.
      connection.get({ text: "select count(*) from sqlite_schema", params: [] });
      return {};
    }
    case "end": {
      connections.get(request.snapshot)?.close();
      connections.delete(request.snapshot);
      return {};
    }
    case "close":
      for (const connection of connections.values()) connection.close();
      return {};
  }
}

function chunk(id: number, rows: Iterator<unknown>): { rows: unknown[]; done: boolean } {
  const taken: unknown[] = [];
  unfinished.delete(id);
  try {
    while (taken.length < rowsPerChunk) {
      const next = rows.next();
      if (next.done === true) return { rows: taken, done: true };
      taken.push(next.value);
    }
  } catch (error) {
    // A statement that found the book busy is under way until it is ended, and keeps the lock of those that come after it.
    rows.return?.();
    throw error;
  }
  unfinished.set(id, rows);
  return { rows: taken, done: false };
}

parentPort?.on("message", (request: ReaderRequest) => {
  let reply: ReaderAnswer;
  try {
    reply = { id: request.id, ...answer(request) };
  } catch (thrown) {
    const error = fromSqliteError(thrown, location);
    const { code, details } = isDaybookError(error) ? error : { code: "internal", details: {} };
    reply = { id: request.id, error: { code, message: describeError(error).message, details } };
  }
  parentPort?.postMessage(reply);
  if (request.kind === "close") parentPort?.close();
});
