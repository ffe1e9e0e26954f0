// The main thread's end of a reader. It starts with its first request, because most programs that open a book never
// need one.
import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { dirname, extname } from "node:path";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../core/clock.ts";
import { DaybookError, type ErrorCode } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { Query } from "../sql.ts";
import { startThread } from "../thread.ts";
import { isBusy } from "./sqlite-error.ts";
import type { ReaderAnswer, ReaderData, ReaderRequest } from "./reader-program.ts";

export type Answered = { readonly rows: unknown[]; readonly more: boolean };

export type SqliteReader = {
  /** `bytesMax`: the answer ends early there, and says that there is more. */
  all(query: Query, bytesMax?: number): Promise<Answered>;
  /** From here to `end` all reads are of one moment. */
  begin(): Promise<void>;
  end(): Promise<void>;
  /** False once it has ended, or was told to. */
  readonly alive: boolean;
  /** Lets every other process come first, for the rest of its life: only the system's owner may take that back. */
  yield(): void;
  readonly yielded: boolean;
  /** For how long it has had a processor, in all; null where the system does not say. */
  busyMs(): number | null;
  /** Whether it is ready to be asked. */
  readonly started: boolean;
  /** Resolves once it is; of one that never starts, never. */
  readonly ready: Promise<void>;
  /** Ends it in the middle of whatever it does, and resolves once it holds nothing of the file any more. */
  kill(): Promise<void>;
  /** Ends it after what it was asked so far. */
  close(): Promise<void>;
};

const retryMs = 2;

/** Of the first message of a reader, which answers nobody: it has started. */
const readyId = 0;

type Asker = { resolve(answer: ReaderAnswer): void; reject(error: unknown): void };

// Omit on a union keeps only what all members share; this keeps each member's own fields.
type Unsent<R = ReaderRequest> = R extends unknown ? Omit<R, "id"> : never;

export function createReader(data: ReaderData, where: "process" | "thread" = "thread"): SqliteReader {
  const waiting = new Map<number, Asker>();
  let running: Running | undefined;
  let ended = false;
  let yielded = false;
  let started = false;
  const { promise: ready, resolve: tellReady } = Promise.withResolvers<void>();
  let lastId = 0;

  function hear(answer: ReaderAnswer): void {
    started = true;
    tellReady();
    if (answer.id === readyId) return;
    const asker = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0) running?.hold(false);
    if (answer.error === undefined) asker?.resolve(answer);
    else asker?.reject(toError(answer.error));
  }

  function gone(cause: unknown): void {
    ended = true;
    for (const asker of waiting.values()) {
      asker.reject(new DaybookError("unavailable", "the reader ended: ask again", { cause }));
    }
    waiting.clear();
  }

  function start(): Running {
    const begun = (where === "thread" ? startInThread : startProcess)(data, hear, gone);
    if (yielded) begun.yield();
    return begun;
  }

  async function ask(request: Unsent): Promise<ReaderAnswer> {
    if (ended) throw new DaybookError("unavailable", "the process that read has ended: read again");
    running ??= start();
    const id = ++lastId;
    const { promise, resolve, reject } = Promise.withResolvers<ReaderAnswer>();
    waiting.set(id, { resolve, reject });
    running.hold(true); // somebody waits for an answer now
    running.send({ ...request, id });
    return promise;
  }

  async function askPatiently(request: Unsent): Promise<ReaderAnswer> {
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
    async all(query, bytesMax) {
      const first = await askPatiently({ kind: "query", query, bytesMax: bytesMax ?? null });
      const rows = first.rows ?? [];
      let last = first;
      while (last.done === false) {
        last = await ask({ kind: "more", of: first.id });
        for (const row of last.rows ?? []) rows.push(row);
      }
      return { rows, more: last.cut === true };
    },
    async begin() {
      await askPatiently({ kind: "begin" });
    },
    async end() {
      await ask({ kind: "end" });
    },
    get alive() {
      return !ended;
    },
    yield() {
      yielded = true;
      running?.yield();
    },
    get yielded() {
      return yielded;
    },
    busyMs: () => running?.busyMs() ?? null,
    get started() {
      return started;
    },
    ready,
    async kill() {
      gone("it was told to");
      await running?.kill();
    },
    async close() {
      if (running === undefined || ended) return void (ended = true);
      const last = ask({ kind: "close" });
      ended = true;
      await last.catch(() => undefined); // one that is gone is closed
      await running.kill();
    },
  };
}

type Running = {
  send(request: ReaderRequest): void;
  hold(alive: boolean): void;
  yield(): void;
  busyMs(): number | null;
  kill(): Promise<void>;
};
type Hear = (answer: ReaderAnswer) => void;

/** A program that is one file, or that may start no others, reads by threads: there a statement goes on after its deadline. */
export function mayStartProcesses(): boolean {
  const { permission } = process as { permission?: { has(scope: string): boolean } };
  return !isSea() && permission?.has("child") !== false;
}

function startProcess(data: ReaderData, hear: Hear, gone: (cause: unknown) => void): Running {
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  const program = new URL(`./reader-program${extname(import.meta.url)}`, import.meta.url);
  const child = fork(fileURLToPath(program), [JSON.stringify(data)], {
    // What does not fit in memory is sorted beside the book: that folder can be written, and others need not be.
    env: { SQLITE_TMPDIR: dirname(data.location), ...env },
    execArgv: ["--max-semi-space-size=1", "--v8-pool-size=1", "--optimize-for-size"],
    serialization: "advanced",
    // Of the program's session, and not its own: Linux may weigh sessions against each other, and in one of its own a reader
    // would let nobody come first.
    detached: false,
    // The fourth ends with this process, which tells the reader that nobody waits any more.
    stdio: ["ignore", "ignore", "ignore", "pipe", "ipc"],
  });
  // Before anything else: one that could not be started says so by this alone, and has no channel.
  child.on("error", gone);
  child.on("exit", gone);
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  child.on("message", (answer) => hear(answer as ReaderAnswer));
  const [, , , pipe] = (child.stdio as readonly ({ unref?(): void } | null)[] | undefined) ?? [];
  pipe?.unref?.();
  return {
    send(request) {
      if (child.connected) child.send(request, (error) => void (error !== null && gone(error)));
    },
    hold(alive) {
      const change = alive ? "ref" : "unref";
      child[change]();
      child.channel?.[change]();
    },
    yield() {
      // One that could not be started has no number, and to the system none means this very process.
      const { pid } = child;
      // Where the system does not let it, it competes with the others.
      if (pid !== undefined) attempt(() => setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL));
    },
    busyMs: () => (child.pid === undefined ? null : processorMs(child.pid)),
    kill() {
      child.ref();
      child.kill("SIGKILL");
      return exited;
    },
  };
}

function startInThread(data: ReaderData, hear: Hear, gone: (cause: unknown) => void): Running {
  const worker = startThread("./reader-program", import.meta.url, data);
  worker.on("message", hear);
  worker.on("error", gone);
  worker.on("exit", gone);
  return {
    send: (request) => worker.postMessage(request),
    hold: (alive) => (alive ? worker.ref() : worker.unref()),
    yield: () => undefined,
    busyMs: () => null,
    // Not awaited: it does not end before its statement does.
    async kill() {
      worker.unref();
      void worker.terminate();
    },
  };
}

function attempt(run: () => void): void {
  try {
    run();
  } catch {
    // Nothing depends on it.
  }
}

/** For how long the thread that reads has had a processor. Linux alone says so. */
function processorMs(pid: number): number | null {
  if (process.platform !== "linux") return null;
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    return null;
  }
}

function toError(error: NonNullable<ReaderAnswer["error"]>): DaybookError {
  return new DaybookError(error.code as ErrorCode, error.message, { details: error.details });
}
