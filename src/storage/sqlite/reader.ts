// The main thread's end of a reader thread. The thread starts with the first heavy read, because most programs that
// open a book never need one.
import type { Worker } from "node:worker_threads";
import { DaybookError, type ErrorCode } from "../../core/error.ts";
import type { Query } from "../sql.ts";
import { startThread } from "../thread.ts";
import type { ReaderAnswer, ReaderData, ReaderRequest } from "./reader-thread.ts";

export type ReaderThread = {
  all(query: Query, snapshot?: number): Promise<unknown[]>;
  begin(snapshot: number): Promise<void>;
  end(snapshot: number): Promise<void>;
  close(): Promise<void>;
};

// Omit on a union keeps only what all members share; this keeps each member's own fields.
type Unsent<R = ReaderRequest> = R extends unknown ? Omit<R, "id"> : never;

export function createReaderThread(data: ReaderData): ReaderThread {
  const waiting = new Map<number, { resolve(answer: ReaderAnswer): void; reject(error: unknown): void }>();
  let worker: Worker | undefined;
  let lastId = 0;

  function start(): Worker {
    const started = startThread("./reader-thread", import.meta.url, data);
    started.on("message", (answer: ReaderAnswer) => {
      const asker = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0) started.unref();
      if (answer.error === undefined) asker?.resolve(answer);
      else asker?.reject(toError(answer.error));
    });
    const gone = (cause: unknown): void => {
      if (worker === started) worker = undefined;
      for (const asker of waiting.values()) {
        asker.reject(new DaybookError("unavailable", "the reader thread ended: ask again", { cause }));
      }
      waiting.clear();
    };
    started.on("error", gone);
    started.on("exit", gone);
    return started;
  }

  function ask(request: Unsent): Promise<ReaderAnswer & { id: number }> {
    const thread = (worker ??= start());
    const id = ++lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      thread.ref(); // somebody waits for an answer now
      thread.postMessage({ ...request, id });
    });
  }

  return {
    async all(query, snapshot) {
      const first = await ask({ kind: "query", query, snapshot: snapshot ?? null });
      const rows = first.rows ?? [];
      let { done } = first;
      while (done === false) {
        const next = await ask({ kind: "more", of: first.id });
        for (const row of next.rows ?? []) rows.push(row);
        done = next.done;
      }
      return rows;
    },
    async begin(snapshot) {
      await ask({ kind: "begin", snapshot });
    },
    async end(snapshot) {
      await ask({ kind: "end", snapshot });
    },
    async close() {
      if (worker === undefined) return;
      await ask({ kind: "close" });
      await worker?.terminate();
    },
  };
}

function toError(error: NonNullable<ReaderAnswer["error"]>): DaybookError {
  return new DaybookError(error.code as ErrorCode, error.message, { details: error.details });
}
