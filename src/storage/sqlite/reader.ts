// The main thread's end of a reader thread. The thread starts with the first heavy read, because most programs that
// open a book never need one.
import type { Worker } from "node:worker_threads";
import { systemClock } from "../../core/clock.ts";
import { DaybookError, type ErrorCode } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Query } from "../sql.ts";
import { startThread } from "../thread.ts";
import { isBusy } from "./sqlite-error.ts";
import type { ReaderAnswer, ReaderData, ReaderRequest } from "./reader-thread.ts";

export type ReaderThread = {
  all(query: Query, snapshot?: number): Promise<unknown[]>;
  begin(snapshot: number): Promise<void>;
  end(snapshot: number): Promise<void>;
  /** Leaves the thread to a statement that does not end, and starts another for whoever asks next. */
  abandon(): void;
  close(): Promise<void>;
};

const retryMs = 2;

type Asker = { resolve(answer: ReaderAnswer): void; reject(error: unknown): void };
type Thread = { readonly worker: Worker; readonly waiting: Map<number, Asker> };

// Omit on a union keeps only what all members share; this keeps each member's own fields.
type Unsent<R = ReaderRequest> = R extends unknown ? Omit<R, "id"> : never;

export function createReaderThread(data: ReaderData): ReaderThread {
  let current: Thread | undefined;
  let closed = false;
  let lastId = 0;

  function start(): Thread {
    const worker = startThread("./reader-thread", import.meta.url, data);
    const waiting = new Map<number, Asker>();
    worker.on("message", (answer: ReaderAnswer) => {
      const asker = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0) worker.unref();
      if (answer.error === undefined) asker?.resolve(answer);
      else asker?.reject(toError(answer.error));
    });
    const thread = { worker, waiting };
    const gone = (cause: unknown): void => {
      if (current === thread) current = undefined;
      forget(thread, cause);
    };
    worker.on("error", gone);
    worker.on("exit", gone);
    return thread;
  }

  function forget({ waiting }: Thread, cause: unknown): void {
    for (const asker of waiting.values()) {
      asker.reject(new DaybookError("unavailable", "the reader thread ended: ask again", { cause }));
    }
    waiting.clear();
  }

  async function ask(request: Unsent): Promise<ReaderAnswer & { id: number }> {
    if (closed) throw new DaybookError("closed", "the book is closed: open it again to read");
    const { worker, waiting } = (current ??= start());
    const id = ++lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      worker.ref(); // somebody waits for an answer now
      worker.postMessage({ ...request, id });
    });
  }

  async function askPatiently(request: Unsent): Promise<ReaderAnswer & { id: number }> {
    const until = systemClock.monotonic() + limits.busyMsMax;
    for (;;) {
      try {
        return await ask(request);
      } catch (error) {
        if (!isBusy(error) || systemClock.monotonic() >= until) throw error;
        await systemClock.sleep(retryMs);
      }
    }
  }

  return {
    async all(query, snapshot) {
      const first = await askPatiently({ kind: "query", query, snapshot: snapshot ?? null });
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
      await askPatiently({ kind: "begin", snapshot });
    },
    async end(snapshot) {
      await ask({ kind: "end", snapshot });
    },
    abandon() {
      const left = current;
      current = undefined;
      if (left === undefined) return;
      left.worker.postMessage({ kind: "close", id: 0 });
      left.worker.unref();
      forget(left, "abandoned");
    },
    async close() {
      const last = current === undefined ? undefined : ask({ kind: "close" });
      closed = true;
      await last?.catch(() => undefined); // a thread that is gone, or was left behind, is closed
      await current?.worker.terminate();
    },
  };
}

function toError(error: NonNullable<ReaderAnswer["error"]>): DaybookError {
  return new DaybookError(error.code as ErrorCode, error.message, { details: error.details });
}
