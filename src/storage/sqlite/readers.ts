// The readers of one book. Each serves one read at a time, so whoever has to be ended takes nobody along; they start
// when they are needed and end when they are not for a while. A tenant whose read cost a reader its life waits for the
// start of the next one itself, instead of taking one that serves others.
import { systemClock, type Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { ReaderData } from "./reader-program.ts";
import type { Query } from "../sql.ts";
import { createReader, type Answered, type SqliteReader } from "./reader.ts";

export type Readers = {
  /** Runs one statement. A reader that ended by itself, or by the system's hand, is no reason to fail: another is asked. */
  ask(tenant: string, signal: AbortSignal, query: Query, bytesMax: number | undefined): Promise<Answered>;
  /** Runs `work` with a reader of its own. When the signal aborts, the reader is ended. */
  use<T>(tenant: string, signal: AbortSignal, work: (reader: SqliteReader) => Promise<T>): Promise<T>;
  /** Resolves once no reader holds the file. */
  close(): Promise<void>;
};

export function createReaders(data: ReaderData, where: "process" | "thread"): Readers {
  // The one that was used last is taken first, so that the others may rest and end.
  const idle = new Map<SqliteReader, Timer>();
  const dying = new Set<Promise<void>>();
  const owed = new Map<string, number>();

  function kill(reader: SqliteReader): void {
    const ended = reader.kill().finally(() => dying.delete(ended));
    dying.add(ended);
  }

  function take(tenant: string): SqliteReader {
    const debt = owed.get(tenant) ?? 0;
    if (debt > 1) owed.set(tenant, debt - 1);
    else owed.delete(tenant);
    if (debt > 0) return createReader(data, where);
    for (const [reader, timer] of [...idle].toReversed()) {
      timer.cancel();
      idle.delete(reader);
      if (reader.alive) return reader;
    }
    return createReader(data, where);
  }
  function giveBack(reader: SqliteReader, tenant: string): void {
    if (!reader.alive || reader.yielded) {
      owed.set(tenant, Math.min((owed.get(tenant) ?? 0) + 1, limits.readsMax));
      return kill(reader);
    }
    const timer = systemClock.after(limits.readerIdleMs, () => {
      idle.delete(reader);
      kill(reader);
    });
    idle.set(reader, timer);
  }

  async function use<T>(tenant: string, signal: AbortSignal, work: (reader: SqliteReader) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const reader = take(tenant);
    const end = (): void => kill(reader);
    signal.addEventListener("abort", end, { once: true });
    // The time that a new reader takes to start is not the read's.
    const look = (): void =>
      reader.started ? reader.yield() : void (long = systemClock.after(limits.readYieldMs, look));
    let long = systemClock.after(limits.readYieldMs, look);
    try {
      return await work(reader);
    } finally {
      long.cancel();
      signal.removeEventListener("abort", end);
      giveBack(reader, tenant);
    }
  }

  return {
    use,
    async ask(tenant, signal, query, bytesMax) {
      let first: SqliteReader | undefined;
      try {
        return await use(tenant, signal, (reader) => (first = reader).all(query, bytesMax));
      } catch (error) {
        if (signal.aborted || first?.alive !== false) throw error;
        return use(tenant, signal, (reader) => reader.all(query, bytesMax));
      }
    },
    async close() {
      for (const [reader, timer] of idle) {
        timer.cancel();
        kill(reader);
      }
      idle.clear();
      await Promise.all(dying);
    },
  };
}
